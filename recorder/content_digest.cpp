#include "recorder/content_digest.h"

#include <xxhash.h>

#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/encoding.h"
#include "recorder/digest.h"

namespace verbatim {
namespace {

constexpr std::string_view kLabel = "verbatim.content.1";

// DigestBytes of a message that comes in pieces.
class StreamingDigest {
 public:
  StreamingDigest() : state_(XXH3_createState()) {
    VERBATIM_CHECK(state_ != nullptr);
    XXH3_128bits_reset(state_.get());
  }

  void Add(const void* data, std::size_t size) { XXH3_128bits_update(state_.get(), data, size); }

  Digest Finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    Digest digest;
    static_assert(sizeof canonical.digest == sizeof digest.bytes);
    std::memcpy(digest.bytes.data(), canonical.digest, sizeof canonical.digest);
    return digest;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

void AddDigest(Encoder& out, const Digest& digest) {
  out.Bytes(digest.bytes.data(), digest.bytes.size());
}

template <typename Numbers>
void AddNumbers(Encoder& out, const Numbers& numbers) {
  out.U32(static_cast<std::uint32_t>(numbers.size()));
  for (const auto number : numbers) out.U32(number);
}

void AddAccess(Encoder& out, const AccessRow& access) {
  out.U32(static_cast<std::uint32_t>(access.layer)).I64(access.read_seq).I64(access.base_seq);
  const auto digests = {access.weights, access.optimizer_state, access.gradients};
  std::uint8_t present = 0, bit = 1;
  for (const auto& digest : digests) {
    if (digest) present |= bit;
    bit <<= 1;
  }
  out.U8(present);
  for (const auto& digest : digests) {
    if (digest) AddDigest(out, *digest);
  }
}

std::string EncodeHead(const std::vector<LayerRow>& layers,
                       const std::vector<EvaluationRow>& evaluations) {
  Encoder out;
  out.String(kLabel);
  out.U32(static_cast<std::uint32_t>(layers.size()));
  for (const LayerRow& layer : layers) {
    out.U32(static_cast<std::uint32_t>(layer.layer));
    AddDigest(out, layer.initial_digest);
  }
  out.U32(static_cast<std::uint32_t>(evaluations.size()));
  for (const EvaluationRow& evaluation : evaluations) {
    out.I64(evaluation.index);
    AddNumbers(out, evaluation.choices);
    out.I64(evaluation.correct).I64(evaluation.total);
  }
  return out.bytes();
}

}  // namespace

std::string EncodeSubnetContent(const SubnetRow& subnet) {
  Encoder out;
  constexpr std::size_t kAccessBytesMax = 4 + 8 + 8 + 1 + 3 * 16;
  out.Reserve(64 + 4 * (subnet.choices.size() + subnet.samples.size()) +
              kAccessBytesMax * subnet.accesses.size() + 24 * subnet.activations.size());
  out.I64(subnet.seq);
  AddNumbers(out, subnet.choices);
  AddNumbers(out, subnet.samples);
  AddDigest(out, subnet.batch_digest);
  out.U32(subnet.loss_bits);
  out.U32(static_cast<std::uint32_t>(subnet.accesses.size()));
  for (const AccessRow& access : subnet.accesses) AddAccess(out, access);
  out.U32(static_cast<std::uint32_t>(subnet.activations.size()));
  for (const ActivationRow& activation : subnet.activations) {
    out.U32(static_cast<std::uint32_t>(activation.microbatch));
    out.U32(static_cast<std::uint32_t>(activation.position));
    AddDigest(out, activation.digest);
  }
  return out.bytes();
}

Digest SubnetContentDigest(const SubnetRow& subnet) {
  const std::string content = EncodeSubnetContent(subnet);
  return DigestBytes(content.data(), content.size());
}

Result<Digest> ContentDigest(const RecordReader& reader) {
  ASSIGN_OR_RETURN(const std::vector<LayerRow> layers, reader.Layers());
  ASSIGN_OR_RETURN(const std::vector<EvaluationRow> evaluations, reader.Evaluations());
  StreamingDigest message;
  const std::string head = EncodeHead(layers, evaluations);
  message.Add(head.data(), head.size());
  ReadOptions options;
  options.activations = true;
  RETURN_IF_ERROR(reader.ForEachSubnet(options, [&](const SubnetRow& subnet) {
    const Digest digest = SubnetContentDigest(subnet);
    message.Add(digest.bytes.data(), digest.bytes.size());
    return true;
  }));
  return message.Finish();
}

}  // namespace verbatim
