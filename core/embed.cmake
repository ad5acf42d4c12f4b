# SPDX-License-Identifier: Apache-2.0
# Compiles a folder's YAML files into a room, so that their names work wherever the tool is.
#
# espalier_embed(<function>) gives the current folder an embedded.cpp in its build folder, which defines
# `const std::vector<EmbeddedFile>& <function>()` of <folder>/embedded.h with every *.yaml, by name.
function(espalier_embed function)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME room)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.yaml)
  set(script ${PROJECT_SOURCE_DIR}/core/embed.cmake)
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR} -DROOM=${room}
            -DFUNCTION=${function} -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp -P ${script}
    DEPENDS ${files} ${script}
    VERBATIM)
  install(FILES ${files} DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier/${room})
endfunction()

# As a script (cmake -P): writes the source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB files ${FOLDER}/*.yaml)
  list(SORT files)
  set(source "// SPDX-License-Identifier: Apache-2.0
// Written by core/embed.cmake.
#include \"${ROOM}/embedded.h\"

namespace espalier {

const std::vector<EmbeddedFile>& ${FUNCTION}() {
  static const std::vector<EmbeddedFile> files = {
")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(APPEND source "      {\"${name}\", R\"espalier(${text})espalier\"},\n")
  endforeach()
  string(APPEND source "  };
  return files;
}

}  // namespace espalier
")
  file(WRITE ${OUTPUT} "${source}")
endif()
