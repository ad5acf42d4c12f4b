# SPDX-License-Identifier: Apache-2.0
# What pages are made of: our own scripts and styles in report/page/web, and uPlot, which draws curves.
#
# uPlot (MIT) comes from the npm registry when the build is configured, in the one version that has this
# checksum; nothing of it is in the repository. Without npm, or without a network, pages draw curves
# themselves, as plain SVG. ESPALIER_UPLOT=OFF does not look for it.
set(espalier_uplot_version 1.6.32)
set(espalier_uplot_sha256 4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d)

# espalier_find_uplot(<variable>): a folder with its script, style and license; empty where there is none.
function(espalier_find_uplot variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT ESPALIER_UPLOT)
    message(STATUS "uPlot: not asked for; pages draw curves as plain SVG")
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/uplot)
  set(archive ${folder}/uplot-${espalier_uplot_version}.tgz)
  if(NOT EXISTS ${archive})
    find_program(ESPALIER_NPM npm)
    mark_as_advanced(ESPALIER_NPM)
    if(ESPALIER_NPM)
      file(MAKE_DIRECTORY ${folder})
      execute_process(COMMAND ${ESPALIER_NPM} pack uplot@${espalier_uplot_version} --silent
                              --fetch-retries=0 --fetch-timeout=20000
                      WORKING_DIRECTORY ${folder} TIMEOUT 30 OUTPUT_QUIET ERROR_QUIET)
    endif()
  endif()
  if(NOT EXISTS ${archive})
    message(STATUS "uPlot: not found (no npm, or no network); pages draw curves as plain SVG")
    return()
  endif()
  file(SHA256 ${archive} found)
  if(NOT found STREQUAL espalier_uplot_sha256)
    file(REMOVE ${archive})
    message(STATUS "uPlot: what came has another checksum; pages draw curves as plain SVG")
    return()
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${folder})
  message(STATUS "uPlot: ${espalier_uplot_version}")
  set(${variable} ${folder}/package PARENT_SCOPE)
endfunction()

# espalier_page_assets(): compiles all of these into the room, as report/page/assets.h has them.
function(espalier_page_assets)
  espalier_find_uplot(uplot)
  set(web ${CMAKE_CURRENT_SOURCE_DIR}/page/web)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/page/web.cmake)
  file(GLOB files CONFIGURE_DEPENDS ${web}/*.css ${web}/*.js)
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/page_assets.cpp
    COMMAND ${CMAKE_COMMAND} -DWEB=${web} -DUPLOT=${uplot} -DVERSION=${espalier_uplot_version}
            -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/page_assets.cpp -P ${script}
    DEPENDS ${files} ${script}
    VERBATIM)
endfunction()

# As a script (cmake -P): writes the source.
if(CMAKE_SCRIPT_MODE_FILE)
  # In pieces, as compilers need not take longer ones.
  function(append_asset name text)
    set(pieces "")
    string(LENGTH "${text}" left)
    set(at 0)
    while(at LESS left)
      string(SUBSTRING "${text}" ${at} 16000 piece)
      string(APPEND pieces "\n       R\"espalier(${piece})espalier\"")
      math(EXPR at "${at} + 16000")
    endwhile()
    string(APPEND source "      {\"${name}\",${pieces}},\n")
    set(source "${source}" PARENT_SCOPE)
  endfunction()

  set(license "")
  if(UPLOT)
    file(READ ${UPLOT}/LICENSE license)
    set(curves "uPlot ${VERSION}")
  else()
    set(curves "plain SVG (this build has no uPlot)")
  endif()
  set(source "// SPDX-License-Identifier: Apache-2.0
// Written by report/page/web.cmake.
#include \"report/page/assets.h\"
#include \"report/page/page.h\"

namespace espalier {

std::string_view curve_library() { return \"${curves}\"; }
")
  foreach(kind styles scripts)
    string(APPEND source "
const std::vector<PageAsset>& page_${kind}() {
  static const std::vector<PageAsset> assets = {
")
    if(kind STREQUAL "styles")
      set(ending css)
      set(library uPlot.min.css)
    else()
      set(ending js)
      set(library uPlot.iife.min.js)
    endif()
    if(UPLOT)
      file(READ ${UPLOT}/dist/${library} text)
      append_asset(${library} "/*! uPlot ${VERSION}\n${license}*/\n${text}")
    endif()
    file(GLOB files ${WEB}/*.${ending})
    list(SORT files)
    foreach(file IN LISTS files)
      file(READ ${file} text)
      get_filename_component(name ${file} NAME)
      append_asset(${name} "${text}")
    endforeach()
    string(APPEND source "  };
  return assets;
}
")
  endforeach()
  string(APPEND source "
}  // namespace espalier
")
  file(WRITE ${OUTPUT} "${source}")
endif()
