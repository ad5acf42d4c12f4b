# SPDX-License-Identifier: Apache-2.0
# Of Open MPI and MPICH, which Debian has side by side, the one that this build does not use: sets other_mpi, its
# name there, and, where it is installed, OTHER_MPIEXEC and the target espalier_other_mpi, the tool with its messages.
set(other_mpi mpich)
if(MPI_CXX_LIBRARIES MATCHES "mpich")
  set(other_mpi openmpi)
endif()
find_program(OTHER_MPI_COMPILER mpicxx.${other_mpi})
find_program(OTHER_MPIEXEC mpiexec.${other_mpi})
mark_as_advanced(OTHER_MPI_COMPILER OTHER_MPIEXEC)
if(NOT OTHER_MPI_COMPILER OR NOT OTHER_MPIEXEC)
  return()
endif()

execute_process(COMMAND ${OTHER_MPI_COMPILER} -show OUTPUT_VARIABLE words RESULT_VARIABLE failed
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(STATUS "${OTHER_MPI_COMPILER} does not say how it compiles: ${other_mpi} is not tested")
  return()
endif()
separate_arguments(words UNIX_COMMAND "${words}")
set(includes ${words})
list(FILTER includes INCLUDE REGEX "^-I")
list(TRANSFORM includes REPLACE "^-I" "")
set(libraries ${words})
list(FILTER libraries INCLUDE REGEX "^-[Ll]")
list(FILTER libraries EXCLUDE REGEX "mpi_cxx|mpichcxx")  # the C++ bindings, which nobody uses

# What knows MPI takes the place of the same in the library, which this build's own MPI comes with.
set(sources mpi_calls mpi_connection mpi_transport)
list(TRANSFORM sources REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/exec/mpi/\\1.cpp")
add_executable(espalier_other_mpi ${PROJECT_SOURCE_DIR}/cli/main.cpp ${sources})
target_include_directories(espalier_other_mpi BEFORE PRIVATE ${includes})
target_link_libraries(espalier_other_mpi PRIVATE espalier_cli espalier::exec fmt::fmt espalier_build_flags)
target_link_options(espalier_other_mpi PRIVATE
  LINKER:--push-state,--no-as-needed ${libraries} LINKER:--pop-state LINKER:--as-needed)
set_target_properties(espalier_other_mpi PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
