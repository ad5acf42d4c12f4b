// SPDX-License-Identifier: Apache-2.0
#include "report/objects.h"

namespace espalier {

namespace {

Json proof_json(Proof proof) {
  switch (proof) {
    case Proof::none:
      break;
    case Proof::probabilistic:
      return "probabilistic";
    case Proof::exact:
      return "exact";
  }
  return nullptr;
}

}  // namespace

Json verification_json(const std::string& program, const Verification& verification,
                       bool readable) {
  Json diagnostics = Json::array();
  for (const Diagnostic& problem : verification.problems) {
    diagnostics.push_back({{"rule", problem.rule},
                           {"message", problem.message},
                           {"where",
                            {{"file", problem.where.file},
                             {"line", problem.where.line},
                             {"column", problem.where.column}}}});
  }
  return {{"program", program},
          {"ok", verification.ok()},
          {"proof", proof_json(verification.proof)},
          {"order_consistent", readable ? Json(verification.order_consistent) : Json()},
          {"combines_in_switch", readable ? Json(verification.combines_in_switch) : Json()},
          {"diagnostics", diagnostics}};
}

}  // namespace espalier
