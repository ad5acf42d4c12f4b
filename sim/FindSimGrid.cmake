# SPDX-License-Identifier: Apache-2.0
# SimGrid ships no CMake package file. Sets SimGrid_FOUND, SimGrid_VERSION and SimGrid::SimGrid.
find_path(SimGrid_INCLUDE_DIR simgrid/version.h)
find_library(SimGrid_LIBRARY simgrid)
if(SimGrid_INCLUDE_DIR)
  file(STRINGS "${SimGrid_INCLUDE_DIR}/simgrid/version.h" _simgrid_version
       REGEX "^#define SIMGRID_VERSION_(MAJOR|MINOR) [0-9]+")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*" "\\1" _simgrid_major "${_simgrid_version}")
  string(REGEX REPLACE ".*MINOR ([0-9]+).*" "\\1" _simgrid_minor "${_simgrid_version}")
  set(SimGrid_VERSION "${_simgrid_major}.${_simgrid_minor}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR
                                  VERSION_VAR SimGrid_VERSION)
if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid SHARED IMPORTED)
  set_target_properties(SimGrid::SimGrid PROPERTIES IMPORTED_LOCATION "${SimGrid_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${SimGrid_INCLUDE_DIR}")
endif()
mark_as_advanced(SimGrid_INCLUDE_DIR SimGrid_LIBRARY)
