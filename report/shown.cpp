// SPDX-License-Identifier: Apache-2.0
#include "report/shown.h"

#include <utility>

#include "report/csv.h"

namespace espalier {

namespace {

/// Figures that are 0 where they are not known.
Json or_null(double figure) { return figure > 0 ? rounded(figure) : Json(); }
Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json node_json(const Node& node) {
  return {{"name", node.name},
          {"kind", to_string(node.kind)},
          {"model", or_null(node.model)},
          {"host", node.host >= 0 ? Json(node.host) : Json()},
          {"numa", node.numa >= 0 ? Json(node.numa) : Json()},
          {"memory_gbps", or_null(node.memory_gbps)},
          {"reduce_gbps", or_null(node.reduce_gbps)},
          {"access_gbps", or_null(node.access_gbps)},
          {"peer_limit", node.peer_limit > 0 ? Json(node.peer_limit) : Json()},
          {"copy_engines", node.copy_engines > 0 ? Json(node.copy_engines) : Json()},
          {"combines", node.combines},
          {"speed", rounded(node.speed)},
          {"what_if", or_null(node.what_if)}};
}

Json link_json(const Topology& machine, const Link& link) {
  return {{"a", machine.node(link.a).name},
          {"b", machine.node(link.b).name},
          {"kind", link.kind},
          {"class", to_string(link.link_class)},
          {"count", link.count},
          {"gbps", rounded(link.gbps)},
          {"measured_gbps", or_null(link.measured_gbps)},
          {"latency_s", rounded(link.latency_s)},
          {"duplex", to_string(link.duplex)},
          {"medium", or_null(link.medium)},
          {"what_if", or_null(link.what_if)}};
}

Json tensor_json(const Model& model, const Tensor& tensor) {
  return {{"name", tensor.name},
          {"elements", tensor.elements},
          {"uses", tensor.uses},
          {"share", rounded(tensor.multiply_adds() / model.multiply_adds())}};
}

}  // namespace

std::string machine_json(const Topology& machine) {
  Json nodes = Json::array();
  for (const Node& node : machine.nodes) nodes.push_back(node_json(node));
  Json links = Json::array();
  for (const Link& link : machine.links) links.push_back(link_json(machine, link));
  return dump_results("espalier.machine/1", std::move(links),
                      {{"name", machine.name},
                       {"title", machine.title},
                       {"sources", machine.sources},
                       {"notes", machine.notes},
                       {"hosts", machine.hosts},
                       {"nodes", std::move(nodes)}});
}

std::string machine_csv(const Topology& machine) {
  CsvText text({"a", "b", "kind", "class", "count", "gbps", "measured_gbps", "latency_s", "duplex",
                "medium", "what_if"});
  for (const Link& link : machine.links) text.add(link_json(machine, link));
  return text.finish();
}

std::string model_json(const Model& model) {
  Json steps = Json::array();
  for (const StepTime& step : model.steps) {
    steps.push_back({{"gpu", or_null(step.gpu)},
                     {"batch", step.batch},
                     {"step_s", rounded(step.step_s)},
                     {"source", step.source}});
  }
  Json tensors = Json::array();
  for (const Tensor& tensor : model.tensors) tensors.push_back(tensor_json(model, tensor));
  return dump_results("espalier.model/1", std::move(tensors),
                      {{"name", model.name},
                       {"title", model.title},
                       {"sources", model.sources},
                       {"sample", model.sample},
                       {"elements", model.elements()},
                       {"backward_to_forward", rounded(model.backward_to_forward)},
                       {"steps", std::move(steps)}});
}

std::string model_csv(const Model& model) {
  CsvText text({"name", "elements", "uses", "share"});
  for (const Tensor& tensor : model.tensors) text.add(tensor_json(model, tensor));
  return text.finish();
}

}  // namespace espalier
