// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/error.h"
#include "core/words.h"
#include "report/objects.h"
#include "report/page/assets.h"
#include "report/page/parts.h"

namespace espalier {

namespace {

std::string deflated(const std::string& text) {
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string packed(size, '\0');
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()), 9);
  CHECK(result == Z_OK);
  packed.resize(size);
  return packed;
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::array<unsigned, 3> three{};
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < count; ++i) three[i] = static_cast<unsigned char>(bytes[at + i]);
    const unsigned bits = three[0] << 16 | three[1] << 8 | three[2];
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += digit <= count ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

/// As text and between the quotes of an attribute.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

/// What scripts and styles of the page are known by to its policy. Names from machines and
/// programs are in its data only, which is no script.
std::string nonce_of(const std::string& data) {
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  return fmt::format("espalier{:08x}", sum);
}

std::string page_of(const Page& page, const std::string& json) {
  const std::string data = base64(deflated(json));
  const std::string nonce = nonce_of(data);
  const Json verdict = verdict_json(page);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src data:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"espalier {1}\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{2}</title>\n",
      nonce, escaped(page.version), escaped(page.title));
  for (const PageAsset& style : page_styles()) {
    html += fmt::format("<style nonce=\"{}\">\n", nonce);
    html += style.text;
    html += "</style>\n";
  }
  html += fmt::format(
      "</head>\n<body>\n<header>\n<p class=\"brand\">espalier {}</p>\n<h1>{}</h1>\n"
      "<p id=\"verdict\">{}</p>\n</header>\n<main id=\"page\">\n"
      "<noscript><p>Figures and drawings need JavaScript; the verdict above does not.</p>"
      "</noscript>\n</main>\n",
      escaped(page.verb), escaped(page.title), escaped(verdict["text"].get<std::string>()));
  html += "<script type=\"application/octet-stream\" id=\"data\">" + data + "</script>\n";
  for (const PageAsset& script : page_scripts()) {
    html += fmt::format("<script nonce=\"{}\">\n", nonce);
    html += script.text;
    html += "</script>\n";
  }
  html += "</body>\n</html>\n";
  return html;
}

}  // namespace

Json drawn(double value) {
  if (!std::isfinite(value)) return {};
  if (value == 0) return 0;
  const double digits = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
  const double short_value = std::round(value * digits) / digits;
  return std::isfinite(short_value) ? Json(short_value) : Json(value);
}

std::string page_json(const Page& page, const PageDetail& detail) {
  DrawnMachines machines;
  Json json = {{"schema", "espalier.page/1"}, {"verb", page.verb}, {"title", page.title}};
  json["verdict"] = verdict_json(page);
  json["charts"] = curves_json(page);
  json["plans"] = Json::array();
  for (std::size_t i = 0; i < page.plans.size(); ++i) {
    const BoundProof* const proof = i < page.plan_proofs.size() ? &page.plan_proofs[i] : nullptr;
    json["plans"].push_back(paged_plan_json(*page.plans[i], proof, detail, machines));
  }
  json["runs"] = Json::array();
  for (const PagedRun& run : page.runs) json["runs"].push_back(run_json(run, detail, machines));
  json["iterations"] = Json::array();
  for (const TrainingOutcome& one : page.trained)
    json["iterations"].push_back(iteration_json(one, detail));
  json["machines"] = machines.json();
  json["expectations"] = Json::array();
  for (const Judged& one : page.judged) json["expectations"].push_back(judged_json(one));
  json["skipped"] = Json::array();
  for (const Skipped& one : page.skipped) {
    json["skipped"].push_back({{"algorithm", one.algorithm}, {"reason", one.reason}});
  }
  json["provenance"] = provenance_json(page);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string page_html(const Page& page) {
  PageDetail detail;
  const PageDetail least{.bins = 50, .ops = 200, .links = 100, .trees = 10, .buckets = 10};
  std::string html = page_of(page, page_json(page, detail));
  while (html.size() > kMostPageBytes) {
    if (detail.ops == least.ops) {  // the others are at their least by then
      throw Error(ErrorKind::unsupported,
                  fmt::format("the page would have {} bytes, and pages have at most {}",
                              html.size(), kMostPageBytes),
                  "pages of fewer sizes, algorithms, plans or iterations each");
    }
    detail.bins = std::max(least.bins, detail.bins / 2);
    detail.ops = std::max(least.ops, detail.ops * 2 / 3);
    detail.links = std::max(least.links, detail.links * 2 / 3);
    detail.trees = std::max(least.trees, detail.trees / 4);
    detail.buckets = std::max(least.buckets, detail.buckets / 2);
    html = page_of(page, page_json(page, detail));
  }
  return html;
}

}  // namespace espalier
