// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// The parts between separators; one empty part when `text` is empty.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& words, std::string_view separator);
/// Without spaces, tabs and line ends on both sides.
std::string_view trim(std::string_view text);

/// "1 op", "2 ops"; `plural` where an s is not enough.
std::string counted(std::size_t count, std::string_view singular, std::string_view plural = {});

/// "0-3,6": numbers as lists of GPUs are written.
std::string format_ranges(const std::vector<int>& numbers);

/// `text` with control characters shown as "\x1b", because
/// a message may quote a file that nobody has looked at.
std::string printable(std::string_view text);

/// At most 60 bytes of `text`, printable, between single quotes.
std::string quote(std::string_view text);

/// Between double quotes, as Graphviz reads names and labels.
std::string dot_quoted(std::string_view text);

/// The candidate nearest to `word` by edit distance (a transposition counts as one; case
/// does not count), or else one that begins with it, or an empty string if nothing is near
/// enough to be a likely typing error. Of equally near candidates the earlier one wins.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// What people also call a word of a vocabulary: {"fp16", "half"}. A word that may mean several has
/// a row for each. The tables stand beside the vocabularies.
struct Synonym {
  std::string_view word;
  std::string_view means;
};
using Synonyms = std::vector<Synonym>;

/// What somebody who wrote `word` probably meant, in the order of the candidates; case, '-' and '_'
/// do not count. The first of these that answers: the same word written differently; a synonym, of
/// the word or of its first part ("infiniband_hdr" is ib_hdr where "infiniband" is "ib"); the only
/// candidate that has one letter more or less at an end; candidates that contain the word ("h100"
/// is in dgx-h100); the `nearest`.
std::vector<std::string> likely_meant(std::string_view word,
                                      const std::vector<std::string>& candidates,
                                      const Synonyms& synonyms = {});

/// "did you mean 'ring'?", "did you mean 'a', 'b' or 'c'?" or, when nothing is likely, "one of:
/// chain, ring, ..." (at most 40 words).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         const Synonyms& synonyms = {});

}  // namespace espalier
