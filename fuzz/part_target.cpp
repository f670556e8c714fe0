#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/target.h"
#include "recorder/part_file.h"
#include "tests/recorder/sample_part.h"

namespace verbatim::fuzz {

// What is accepted is, byte for byte, what is written for it, up to a torn tail.
void RunPart(std::string_view input) {
  auto reader = PartReader::Open(WriteScratch("part", input));
  if (!reader) return;
  std::string written = EncodePartHead() + EncodeFrame(reader->session());
  int sessions = 1;
  while (true) {
    auto part = reader->Next();
    if (!part) return;
    if (reader->sessions() > sessions + 1) return;  // only the last of several is told
    if (reader->sessions() > sessions) written += EncodeFrame(reader->session());
    sessions = reader->sessions();
    if (!*part) break;
    Part& kept = **part;
    written += EncodeFrame(kept.seq, EncodeReport(kept.seq, std::move(kept.report)));
  }
  VERBATIM_CHECK(written.size() == reader->sound_bytes(), "{} bytes", written.size());
  VERBATIM_CHECK(written.size() + reader->bytes_left() == input.size(), "{} bytes", input.size());
  VERBATIM_CHECK(input.starts_with(written), "accepted in another form");
}

std::vector<std::string> PartSeeds() {
  using test::SampleFrame;
  using test::SamplePartFile;
  const std::string frames = SamplePartFile(2);
  const std::string again = EncodeFrame(test::SampleSession(1, 2)) + SampleFrame(1);
  const std::string empty = EncodeFrame(2, EncodeReport(2, {}));
  return {SamplePartFile(0), frames, frames + again + empty, frames + SampleFrame(2).substr(0, 40)};
}

}  // namespace verbatim::fuzz
