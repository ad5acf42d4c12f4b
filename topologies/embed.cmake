# SPDX-License-Identifier: Apache-2.0
# cmake "-DFILES=a.yaml;b.yaml" -DOUTPUT=... -P embed.cmake
# Writes a C++ source that holds every file as a raw string literal.
list(SORT FILES)
set(source "// SPDX-License-Identifier: Apache-2.0
// Written by topologies/embed.cmake.
#include \"topologies/embedded.h\"

namespace espalier {

const std::vector<EmbeddedFile>& embedded_files() {
  static const std::vector<EmbeddedFile> files = {
")
foreach(file IN LISTS FILES)
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
