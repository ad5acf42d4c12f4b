// SPDX-License-Identifier: Apache-2.0
#include "ir/cell_map.h"

namespace espalier {

CellMap::CellMap(const Program& program, std::int64_t block) : block_(block) {
  std::vector<bool> is_cut(static_cast<std::size_t>(block_), false);
  is_cut[0] = true;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    is_cut[static_cast<std::size_t>(op.dst.begin % block_)] = true;
    is_cut[static_cast<std::size_t>((std::int64_t{op.dst.begin} + op.length) % block_)] = true;
  }
  for (std::int64_t unit = 0; unit < block_; ++unit) {
    if (is_cut[static_cast<std::size_t>(unit)]) cuts_.push_back(unit);
  }
  dense_ = static_cast<std::int64_t>(cuts_.size()) == block_;
  if (!dense_) {
    index_.resize(static_cast<std::size_t>(block_));
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      index_[static_cast<std::size_t>(cuts_[i])] = static_cast<std::uint32_t>(i);
    }
  }
  cuts_.push_back(block_);

  const std::vector<std::int64_t> tmp = tmp_units(program);
  base_.reserve(3 * static_cast<std::size_t>(program.places()) + 1);
  base_.push_back(0);
  for (PlaceId place = 0; place < program.places(); ++place) {
    for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
      const std::int64_t units = buffer == Buffer::tmp ? tmp[static_cast<std::size_t>(place)]
                                 : place < program.ranks()
                                     ? buffer_units(program.contract, place, buffer)
                                     : 0;
      base_.push_back(base_.back() + cells_of(units));
    }
  }
}

}  // namespace espalier
