#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/target.h"
#include "trainer/data/cifar.h"
#include "trainer/data/idx.h"
#include "trainer/data/text.h"

namespace verbatim::fuzz {
namespace {

// Takes the first byte off the input; 0 where there is none.
int TakeByte(std::string_view& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<unsigned char>(input[0]);
  input.remove_prefix(1);
  return byte;
}

void CheckImages(const Result<ImageSet>& images) {
  if (!images) return;
  VERBATIM_CHECK(images->size() >= 1 && images->classes >= 2, "{} images", images->size());
  VERBATIM_CHECK(std::ssize(images->pixels) == images->size() * images->image_size(), "{} pixels",
                 images->pixels.size());
  for (const std::uint8_t label : images->labels) {
    VERBATIM_CHECK(label < images->classes, "label {}", label);
  }
}

}  // namespace

// The first byte says how many bytes are the labels' file; the images' file follows it.
void RunIdx(std::string_view input) {
  const auto label_bytes = static_cast<std::size_t>(TakeByte(input));
  const auto labels = WriteScratch("labels", input.substr(0, label_bytes));
  const auto images = WriteScratch("images", input.substr(std::min(label_bytes, input.size())));
  CheckImages(ReadIdx(images, labels));
}

// The lowest bit of the first byte chooses the layout.
void RunCifar(std::string_view input) {
  const std::int64_t classes = TakeByte(input) % 2 == 0 ? 10 : 100;
  CheckImages(ReadCifar({WriteScratch("images.bin", input)}, classes));
}

// The first two bytes are the length of a sample and the places of it that are the encoder's.
void RunText(std::string_view input) {
  const std::int64_t length = 1 + TakeByte(input);
  const std::int64_t source = TakeByte(input) % length;
  WriteScratch("text", input);
  const auto text = LoadText(ScratchFolder(), "text", length, source, 100'000);
  if (!text) return;
  VERBATIM_CHECK(text->size() >= 1, "no sample");
  VERBATIM_CHECK(std::ssize(text->Labels(text->size() - 1)) == length - source, "labels");
}

}  // namespace verbatim::fuzz
