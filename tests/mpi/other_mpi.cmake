# SPDX-License-Identifier: Apache-2.0
# The tool with another MPI in place of the one that it was built with, where Debian's names find one beside it, so
# that both are tested: espalier_other_mpi. Sets ESPALIER_OTHER_MPIEXEC, what starts its processes, and
# ESPALIER_OTHER_MPI_MESSAGE.
set(ESPALIER_OTHER_MPIEXEC)
get_filename_component(compiler "${MPI_CXX_COMPILER}" REALPATH)
if("${compiler};${ESPALIER_MPIEXEC}" MATCHES "[.]mpich|hydra")
  set(other openmpi)
else()
  set(other mpich)
endif()
set(ESPALIER_OTHER_MPI_MESSAGE
    "MPI: tested with ${ESPALIER_MPIEXEC} only (no mpicxx.${other} and mpiexec.${other} here)")
find_program(ESPALIER_OTHER_MPICXX mpicxx.${other})
find_program(ESPALIER_OTHER_LAUNCHER mpiexec.${other})
mark_as_advanced(ESPALIER_OTHER_MPICXX ESPALIER_OTHER_LAUNCHER)
if(ESPALIER_OTHER_MPICXX AND ESPALIER_OTHER_LAUNCHER)
  execute_process(COMMAND ${ESPALIER_OTHER_MPICXX} -show OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  separate_arguments(words UNIX_COMMAND "${words}")
  set(folders ${words})
  list(FILTER folders INCLUDE REGEX "^-I")
  list(TRANSFORM folders REPLACE "^-I" "")
  set(libraries ${words})
  list(FILTER libraries INCLUDE REGEX "^-[Ll]")
  list(FILTER libraries EXCLUDE REGEX "mpi_cxx|mpichcxx")  # the C++ bindings, which nobody uses
  if(NOT failed AND libraries)
    # What knows MPI, compiled with the other one's headers, is found before the library's own; and the other library
    # comes first, so that nothing of the usual one is needed.
    set(sources mpi_calls.cpp mpi_connection.cpp mpi_transport.cpp)
    list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/exec/mpi/)
    add_executable(espalier_other_mpi ${PROJECT_SOURCE_DIR}/cli/main.cpp ${sources})
    target_include_directories(espalier_other_mpi BEFORE PRIVATE ${PROJECT_SOURCE_DIR} ${folders})
    target_compile_definitions(espalier_other_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(espalier_other_mpi PRIVATE espalier_cli espalier::exec espalier_build_flags fmt::fmt)
    target_link_options(espalier_other_mpi PRIVATE LINKER:--push-state,--no-as-needed ${libraries} LINKER:--pop-state
                                                   LINKER:--as-needed)
    set_target_properties(espalier_other_mpi PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(ESPALIER_OTHER_MPIEXEC ${ESPALIER_OTHER_LAUNCHER})
    set(ESPALIER_OTHER_MPI_MESSAGE "MPI: tested with ${ESPALIER_OTHER_MPICXX} as well")
  endif()
endif()
