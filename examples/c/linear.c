/* Trains y = 2x + 1 by gradient descent with momentum, in plain C, and records every step.
 *
 *   cc linear.c $(pkg-config --cflags --libs verbatim-recorder) -o linear
 *   ./linear run.db && verbatim verify run.db
 *
 * A second argument is the learning rate: two runs with different ones are what `verbatim diff`
 * explains. */
#include <stdio.h>
#include <stdlib.h>
#include <verbatim_recorder.h>

enum { kSteps = 50, kBatch = 8, kLayers = 2 };

/* Ends the program where a call about the record went wrong. */
static void check(int code) {
  if (code == VERBATIM_OK) return;
  fprintf(stderr, "error: %s\n%s%s\n", verbatim_message(), *verbatim_hint() ? "hint: " : "",
          verbatim_hint());
  exit(code);
}

/* Two layers of one number each, and what the optimizer keeps of them. */
typedef struct model {
  float weight, bias;
  float momentum[kLayers];
} model;

static verbatim_tensor tensor(const char* name, const float* data, const int64_t* shape,
                              size_t rank) {
  verbatim_tensor made = {name, data, sizeof(float), VERBATIM_FLOAT32, shape, rank};
  if (rank == 1) made.bytes *= (size_t)shape[0];
  return made;
}

static verbatim_recorder* open_record(const char* path, const model* initial) {
  verbatim_run run;
  verbatim_run_init(&run, sizeof run);
  run.name = "linear";
  run.has_seed = 1;
  run.seed = 1;
  run.steps_planned = kSteps;
  run.settings_json = "{\"optimizer\": \"sgd\", \"momentum\": 0.9, \"batch\": 8}";
  run.environment_json = "{\"info.compiler\": \"" __VERSION__ "\"}";
  verbatim_layer layers[kLayers] = {{0}};
  layers[0].name = "linear.weight";
  layers[1].name = "linear.bias";
  const float* values[kLayers] = {&initial->weight, &initial->bias};
  for (int i = 0; i < kLayers; ++i) {
    layers[i].kind = VERBATIM_PARAMETER;
    layers[i].dtype = VERBATIM_FLOAT32;
    const verbatim_tensor value = tensor("", values[i], NULL, 0);
    check(verbatim_digest_tensor(&value, &layers[i].initial));
  }
  verbatim_recorder* recorder;
  check(verbatim_recorder_open(path, &run, layers, kLayers, &recorder));
  return recorder;
}

static void record(verbatim_recorder* recorder, int number, float loss, double rate,
                   const float* inputs, const float* labels, const model* trained) {
  const int64_t batch_shape[1] = {kBatch};
  const verbatim_tensor batch[2] = {tensor("inputs", inputs, batch_shape, 1),
                                    tensor("labels", labels, batch_shape, 1)};
  verbatim_digest batch_digest;
  check(verbatim_digest_tensors(batch, 2, &batch_digest));
  verbatim_layer_digests layers[kLayers];
  const float* values[kLayers] = {&trained->weight, &trained->bias};
  for (int i = 0; i < kLayers; ++i) {
    const verbatim_tensor momentum = tensor("momentum_buffer", &trained->momentum[i], NULL, 0);
    layers[i].layer = i;
    layers[i].present = VERBATIM_WEIGHTS | VERBATIM_OPTIMIZER_STATE;
    check(verbatim_recorder_digest(recorder, i, values[i], sizeof(float), &layers[i].weights));
    check(verbatim_digest_tensors(&momentum, 1, &layers[i].optimizer_state));
  }
  char settings[64];
  snprintf(settings, sizeof settings, "{\"lr\": %.17g}", rate);
  verbatim_step step;
  verbatim_step_init(&step, sizeof step);
  step.step = number;
  step.has_loss = 1;
  step.loss = loss;
  step.batch = &batch_digest;
  step.settings_json = settings;
  step.layers = layers;
  step.layer_count = kLayers;
  check(verbatim_recorder_record(recorder, &step));
}

/* Fills a batch that depends on the step's number alone. */
static void make_batch(int number, float* inputs, float* labels) {
  for (int i = 0; i < kBatch; ++i) {
    inputs[i] = (float)((number * 31 + i * 17) % 100) / 100.0f;
    labels[i] = 2.0f * inputs[i] + 1.0f;
  }
}

/* One step of gradient descent; the mean squared error before it. */
static float train(model* trained, double rate, const float* inputs, const float* labels) {
  float loss = 0.0f, gradients[kLayers] = {0.0f, 0.0f};
  for (int i = 0; i < kBatch; ++i) {
    const float error = trained->weight * inputs[i] + trained->bias - labels[i];
    loss += error * error / kBatch;
    gradients[0] += 2.0f * error * inputs[i] / kBatch;
    gradients[1] += 2.0f * error / kBatch;
  }
  for (int i = 0; i < kLayers; ++i)
    trained->momentum[i] = 0.9f * trained->momentum[i] + gradients[i];
  trained->weight -= (float)rate * trained->momentum[0];
  trained->bias -= (float)rate * trained->momentum[1];
  return loss;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: linear RUN.db [LEARNING_RATE]\n");
    return VERBATIM_USAGE;
  }
  const double rate = argc > 2 ? strtod(argv[2], NULL) : 0.1;
  model trained = {0.0f, 0.0f, {0.0f, 0.0f}};
  verbatim_recorder* recorder = open_record(argv[1], &trained);
  float inputs[kBatch], labels[kBatch];
  for (int number = 0; number < kSteps; ++number) {
    make_batch(number, inputs, labels);
    const float loss = train(&trained, rate, inputs, labels);
    record(recorder, number, loss, rate, inputs, labels, &trained);
  }
  check(verbatim_recorder_close(recorder, VERBATIM_COMPLETE, NULL));
  verbatim_recorder_free(recorder);
  printf("recorded %d steps, y = %.4f x + %.4f\n", kSteps, (double)trained.weight,
         (double)trained.bias);
  return 0;
}
