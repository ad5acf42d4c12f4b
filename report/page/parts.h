// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/json.h"
#include "report/page/channels.h"
#include "report/page/drawing.h"
#include "report/page/page.h"
#include "topologies/rotation.h"

// Private to the room: the parts of a page's data.

namespace espalier {

/// The machines of a page, each drawn once. Of machines with very many links those are shown that
/// are asked for first.
class DrawnMachines {
 public:
  struct One {
    const Topology* topology = nullptr;
    Drawing drawing;
    std::vector<int> node_index;   ///< by node: of its drawn node
    std::vector<int> link_index;   ///< by link: of its drawn link, or -1 within a fold
    std::vector<int> shown;        ///< indices of drawn links, in the order of their numbers
    std::vector<int> link_number;  ///< by drawn link: its number on the page, or -1

    void show(std::size_t drawn_link);
    /// Its number on the page; -1 where there is no room for it.
    int number_of_drawn(int drawn_link);
    /// The same of a link of the machine; -1 also within a fold.
    int number_of(LinkId link);
  };

  /// Its number on the page.
  int number(const Topology& topology);
  One& at(int number) { return all_[static_cast<std::size_t>(number)]; }
  Json json() const;

 private:
  std::vector<One> all_;
};

/// Charts of time and bandwidth over size: one for each collective, machine and way to ask.
Json curves_json(const Page& page);

/// Channels, the busiest first, and where they are drawn; of a folded program each stands for all
/// that the rotation moves it to. `number`, where given, is filled with the place of each, or -1.
Json channels_json(const std::vector<Channel>& all, std::size_t most, const Rotation* rotation,
                   DrawnMachines::One& machine, std::vector<int>* number);
/// What proves a bound, on the drawing of a machine.
Json proof_json(const BoundProof& proof, DrawnMachines::One& machine);
/// A run op by op: what channels carry over time, lanes, the longest ops and the critical path.
Json run_json(const PagedRun& run, const PageDetail& detail, DrawnMachines& machines);
/// A plan as a run without time, and its report.
Json paged_plan_json(const Planned& plan, const BoundProof* proof, const PageDetail& detail,
                     DrawnMachines& machines);
/// An iteration of training, for its own chart.
Json iteration_json(const TrainingOutcome& outcome, const PageDetail& detail);

/// A line that says it all, and figures by name.
Json verdict_json(const Page& page);
/// Where all of it comes from.
Json provenance_json(const Page& page);

/// Six digits, which is more than one sees.
Json drawn(double value);
/// Shares of something in equal parts of time, a character each: U+0100 is 0, U+01C8 is 1. All of
/// these take two bytes, no escapes, and compress well.
std::string shares_text(const std::vector<double>& shares);
inline Json micros(double seconds) { return drawn(seconds * 1e6); }

}  // namespace espalier
