# SPDX-License-Identifier: Apache-2.0
# Debian's COIN-OR CLP ships no CMake package file. Sets CLP_FOUND, CLP_VERSION and CLP::CLP.
find_path(CLP_INCLUDE_DIR ClpSimplex.hpp PATH_SUFFIXES coin coin-or)
find_library(CLP_LIBRARY Clp)
find_library(CLP_COINUTILS_LIBRARY CoinUtils)
if(CLP_INCLUDE_DIR)
  file(STRINGS "${CLP_INCLUDE_DIR}/ClpConfig.h" _clp_version REGEX "^#define CLP_VERSION ")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" CLP_VERSION "${_clp_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CLP
  REQUIRED_VARS CLP_LIBRARY CLP_COINUTILS_LIBRARY CLP_INCLUDE_DIR VERSION_VAR CLP_VERSION)
if(CLP_FOUND AND NOT TARGET CLP::CLP)
  add_library(CLP::CLP UNKNOWN IMPORTED)
  set_target_properties(CLP::CLP PROPERTIES IMPORTED_LOCATION "${CLP_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${CLP_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES "${CLP_COINUTILS_LIBRARY}")
endif()
mark_as_advanced(CLP_INCLUDE_DIR CLP_LIBRARY CLP_COINUTILS_LIBRARY)
