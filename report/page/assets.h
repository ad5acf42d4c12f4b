// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

// Private to the room: what pages are made of, embedded when it is built (report/page/web.cmake).

namespace espalier {

struct PageAsset {
  std::string_view name;
  std::string_view text;
};

/// In the order in which the page has them; those of the library that draws curves come first.
const std::vector<PageAsset>& page_styles();
const std::vector<PageAsset>& page_scripts();

}  // namespace espalier
