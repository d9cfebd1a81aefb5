#include <algorithm>

#include "cli/bench/row.h"
#include "cli/io/format.h"

namespace qgen::cli {
namespace {

constexpr int kLabelWidth = 170;
constexpr int kBarWidth = 480;
constexpr int kLineHeight = 24;

std::string escape_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_at(int x, int y, std::string_view anchor, std::string_view text) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + escape_xml(text) + "</text>\n";
}

/// Bars of one kind of test on their own scale: prefill and decode differ by orders of magnitude.
std::string panel(std::string_view title, const std::vector<const BenchRow*>& rows, int& y) {
  std::string svg;
  double most = 0;
  for (const BenchRow* row : rows) most = std::max(most, median(row->samples_ts));
  if (!(most > 0)) return svg;
  y += kLineHeight;
  svg += text_at(kLabelWidth, y, "start", title);
  for (const BenchRow* row : rows) {
    const double speed = median(row->samples_ts);
    const int width = std::max(1, static_cast<int>(kBarWidth * speed / most));
    const std::string depth = row->n_depth > 0 ? " @ d" + std::to_string(row->n_depth) : "";
    y += kLineHeight;
    svg += text_at(kLabelWidth - 8, y, "end", row->mode + " " + row->test() + depth);
    svg += "<rect x=\"" + std::to_string(kLabelWidth) + "\" y=\"" + std::to_string(y - 14) + "\" width=\"" +
           std::to_string(width) + "\" height=\"18\" fill=\"#4878a8\"/>\n";
    svg += text_at(kLabelWidth + width + 6, y, "start", fixed(speed, speed < 10 ? 2 : 1));
  }
  y += kLineHeight / 2;
  return svg;
}

}  // namespace

std::string plot_report(const BenchReport& report) {
  std::vector<const BenchRow*> prefill, decode;
  for (const BenchRow& row : report.rows) (row.n_prompt > 0 ? prefill : decode).push_back(&row);
  int y = kLineHeight;
  std::string body = text_at(kLabelWidth, y, "start", report.model);
  body += panel("Prefill, tokens per second (median)", prefill, y);
  body += panel("Decode, tokens per second (median)", decode, y);
  const int width = kLabelWidth + kBarWidth + 90;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) + "\" height=\"" +
         std::to_string(y + kLineHeight) +
         "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"white\"/>\n" +
         body + "</svg>\n";
}

}  // namespace qgen::cli
