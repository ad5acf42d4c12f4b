// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "exec/mpi_cuda/direct_path.h"
#include "exec/mpi_cuda/mapped_path.h"
#include "exec/mpi_cuda/nccl_path.h"
#include "ir/print.h"

namespace espalier::cuda {
namespace {

constexpr std::size_t kRoutes = 4;

std::size_t index_of(Route route) { return static_cast<std::size_t>(route); }

}  // namespace

GpuSteps::GpuSteps(const MessagePlan& plan, const MessageKind& kind, const GpuBuffers& buffers,
                   Transport& transport)
    : plan_(plan),
      kind_(kind),
      buffers_(buffers),
      gpu_(buffers.gpu()),
      mailbox_(transport),
      combines_(gpu_.number),
      paths_(kRoutes) {
  sources_.reserve(plan.sources.size());
  for (const BufferOffset& source : plan.sources) sources_.push_back(buffers.at(source));
  const bool has_many = std::ranges::any_of(
      plan.steps, [](const MessageStep& step) { return step.source_count > kMaxInlineSources; });
  if (!has_many) return;
  const std::size_t bytes = sources_.size() * sizeof(std::byte*);
  use_gpu(gpu_.number);
  source_table_ = allocate(bytes, gpu_.number, "addresses of sources");
  require(cudaMemcpy(source_table_.get(), sources_.data(), bytes, cudaMemcpyHostToDevice),
          "cudaMemcpy", gpu_.number);
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize", gpu_.number);
}

void GpuSteps::use(const Routes& routes, const Means& means) {
  routes_ = routes;
  for (const std::vector<Route>* side : {&routes_.to, &routes_.from}) {
    for (const Route route : *side) {
      std::unique_ptr<MessagePath>& path = paths_[index_of(route)];
      if (!path) path = make_path(route, means);
    }
  }
}

std::unique_ptr<MessagePath> GpuSteps::make_path(Route route, const Means& means) {
  const StepOver over = [this](std::uint32_t step) { over_.push_back(step); };
  switch (route) {
    case Route::mapped:
      return std::make_unique<MappedPath>(gpu_.number, mailbox_, means.shared, over);
    case Route::direct:
      return std::make_unique<DirectPath>(mailbox_, over);
    case Route::staged:
      return std::make_unique<StagedPath>(gpu_.number, mailbox_, over, means.staging);
    case Route::nccl:
      return std::make_unique<NcclPath>(gpu_.number, means.nccl, messages(), over);
  }
  CHECK(false);
}

/// The steps that are messages.
std::vector<std::uint32_t> GpuSteps::messages() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t step = 0; step < plan_.steps.size(); ++step) {
    if (plan_.steps[step].kind != MessageStepKind::combine) all.push_back(step);
  }
  return all;
}

bool GpuSteps::begin(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  if (step.kind == MessageStepKind::combine) {
    combine(number);
    return false;
  }
  const bool is_send = step.kind == MessageStepKind::send;
  const Route route = (is_send ? routes_.to : routes_.from)[static_cast<std::size_t>(step.peer)];
  paths_[index_of(route)]->begin(
      {number, is_send, step.peer, step.tag, buffers_.at(step.memory), plan_.bytes_of(step)});
  return false;
}

SourceList GpuSteps::sources_of(const MessageStep& step) const {
  SourceList list{};
  list.count = static_cast<int>(step.source_count);
  if (list.count > kMaxInlineSources) {
    list.table = static_cast<const std::byte* const*>(source_table_.get()) + step.source_begin;
  } else {
    std::copy_n(sources_.begin() + step.source_begin, step.source_count, list.addresses);
  }
  return list;
}

void GpuSteps::combine(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  std::byte* const dst = buffers_.at(step.memory);
  const SourceList sources = sources_of(step);
  const int blocks = kFoldBlocksPerProcessor * gpu_.processors;
  const auto bytes = static_cast<std::int64_t>(plan_.bytes_of(step));
  use_gpu(gpu_.number);
  const cudaError_t status =
      step.source_count > 1
          ? launch_fold(kind_.type, kind_.op, dst, sources, {step.elements, blocks},
                        combines_.stream())
          : launch_copy(dst, sources.addresses[0], {bytes, blocks}, combines_.stream());
  if (status != cudaSuccess) {
    require(status, "launching a kernel", gpu_.number,
            fmt::format("for op {} '{}'", step.op, to_string(kind_.program, step.op)));
  }
  combines_.call([this, number] { over_.push_back(number); });
}

void GpuSteps::advance(std::uint32_t oldest, std::vector<std::uint32_t>& over) {
  combines_.advance();
  mailbox_.advance();
  for (const auto& path : paths_) {
    if (path) path->advance(oldest);
  }
  over.insert(over.end(), over_.begin(), over_.end());
  over_.clear();
}

}  // namespace espalier::cuda
