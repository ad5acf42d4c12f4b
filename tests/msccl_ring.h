// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace espalier {

/// An allgather by MSCCL in place: the block of rank i goes once round the ring on channel i mod
/// `channels`, in `instances` equal shares that have thread blocks of their own. A rank has one
/// thread block for each channel of each instance, which sends its own chunk if that is its turn
/// and passes on those of others, in the order in which they come.
inline std::string msccl_allgather_ring(const std::string& protocol, int ranks, int channels,
                                        int instances) {
  const auto of = [](const char* name, int value) {
    return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
  };
  std::string text = "<algo name=\"ring\" coll=\"allgather\" proto=\"" + protocol + "\"" +
                     of("nchannels", channels * instances) +
                     of("nchunksperloop", ranks * instances) + of("ngpus", ranks) +
                     of("inplace", 1) + of("outofplace", 0) + of("minBytes", 0) +
                     of("maxBytes", 0) + ">\n";
  for (int gpu = 0; gpu < ranks; ++gpu) {
    text += "  <gpu" + of("id", gpu) + of("i_chunks", 0) + of("o_chunks", ranks * instances) +
            of("s_chunks", 0) + ">\n";
    for (int block = 0; block < channels * instances; ++block) {
      text += "    <tb" + of("id", block) + of("send", (gpu + 1) % ranks) +
              of("recv", (gpu + ranks - 1) % ranks) + of("chan", block) + ">\n";
      int step = 0;
      for (int hops = 0; hops < ranks; ++hops) {  // that the chunk has behind it
        const int owner = (gpu - hops + ranks) % ranks;
        if (owner % channels != block % channels) continue;
        const int chunk = owner * instances + block / channels;
        const std::string type = hops == 0 ? "s" : (hops == ranks - 1 ? "r" : "rcs");
        text += "      <step" + of("s", step++) + " type=\"" + type + "\" srcbuf=\"o\"" +
                of("srcoff", chunk) + " dstbuf=\"o\"" + of("dstoff", chunk) + of("cnt", 1) +
                of("depid", -1) + of("deps", -1) + of("hasdep", 0) + "/>\n";
      }
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  return text + "</algo>\n";
}

}  // namespace espalier
