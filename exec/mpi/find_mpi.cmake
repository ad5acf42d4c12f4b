# SPDX-License-Identifier: Apache-2.0
# Decides whether programs can be executed over MPI. Sets ESPALIER_HAS_MPI, ESPALIER_MPI_MESSAGE, what
# there is to say about it, and, where MPI is used, ESPALIER_MPIEXEC, what starts its processes.
# MPI_CXX_COMPILER chooses among several: -DMPI_CXX_COMPILER=mpicxx.mpich.

set(ESPALIER_HAS_MPI OFF)
set(ESPALIER_MPI_MESSAGE "MPI: turned off; programs are executed in one process only")
if(ESPALIER_MPI)
  # Without the C++ bindings, which the standard dropped in 2012.
  set(MPI_CXX_SKIP_MPICXX ON CACHE BOOL "Leave out the C++ bindings of MPI")
  find_package(MPI QUIET COMPONENTS CXX)
  set(ESPALIER_MPI_MESSAGE "MPI: not found; programs are executed in one process only")
  if(MPI_CXX_FOUND)
    set(ESPALIER_HAS_MPI ON)
    # Debian has several side by side, and FindMPI takes the first launcher it meets.
    get_filename_component(compiler "${MPI_CXX_COMPILER}" NAME)
    string(REGEX MATCH "[.](openmpi|mpich)$" suffix "${compiler}")
    if(NOT suffix)
      get_filename_component(compiler "${MPI_CXX_COMPILER}" REALPATH)
      string(REGEX MATCH "[.](openmpi|mpich)$" suffix "${compiler}")
    endif()
    find_program(ESPALIER_MPIEXEC NAMES mpiexec${suffix} mpirun${suffix} mpiexec mpirun)
    mark_as_advanced(ESPALIER_MPIEXEC)
    set(ESPALIER_MPI_MESSAGE
        "MPI: version ${MPI_CXX_VERSION} of the standard, ${MPI_CXX_COMPILER}, started by ${ESPALIER_MPIEXEC}")
  endif()
endif()
if(NOT ESPALIER_HAS_MPI AND ESPALIER_MPI AND NOT ESPALIER_MPI STREQUAL "AUTO")
  message(FATAL_ERROR "${ESPALIER_MPI_MESSAGE} (ESPALIER_MPI is ON)")
endif()
