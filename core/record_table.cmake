# SPDX-License-Identifier: Apache-2.0
# Makes the table of a room whose sources are one record each, so that adding one is adding one file.
#
# espalier_record_table(<result> <record> <other sources>...) looks through the current folder, where
# every file NAME defines `const Record& NAME_record()` of the folder's header for records, but for the
# other sources. It writes a source that defines `const std::vector<const Record*>& all_records()`, in
# the order of names, and gives all sources of the room in <result>.
function(espalier_record_table result record)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME room)
  string(SUBSTRING ${record} 0 1 first)
  string(TOUPPER ${first} first)
  string(SUBSTRING ${record} 1 -1 rest)
  set(type ${first}${rest})
  file(GLOB files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cpp)
  list(REMOVE_ITEM files ${ARGN})
  set(declarations "")
  set(rows "")
  foreach(file IN LISTS files)
    string(REGEX REPLACE "\\.cpp$" "" name ${file})
    string(APPEND declarations "const ${type}& ${name}_${record}();\n")
    string(APPEND rows "      &${name}_${record}(),\n")
  endforeach()
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${record}_table.cpp)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"// Written by CMake from the files of @room@/.
#include \"@room@/@record@.h\"

namespace espalier {

@declarations@
const std::vector<const @type@*>& all_@record@s() {
  static const std::vector<const @type@*> all = {
@rows@  };
  return all;
}

}  // namespace espalier
")
  set(${result} ${ARGN} ${files} ${table} PARENT_SCOPE)
endfunction()
