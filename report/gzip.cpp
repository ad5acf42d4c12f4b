// SPDX-License-Identifier: Apache-2.0
#include "report/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "core/check.h"

namespace espalier {

std::string gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // the largest window, with the head of a file
  constexpr int kMemoryLevel = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string packed;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && !text.empty()) {
      const std::size_t count =
          std::min<std::size_t>(text.size(), std::numeric_limits<uInt>::max());
      // zlib only reads what its interface, which is older than const, points to.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      stream.avail_in = static_cast<uInt>(count);
      text.remove_prefix(count);
    }
    Bytef room[1 << 16];
    stream.next_out = room;
    stream.avail_out = sizeof(room);
    state = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    CHECK(state != Z_STREAM_ERROR);
    packed.append(reinterpret_cast<const char*>(room), sizeof(room) - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace espalier
