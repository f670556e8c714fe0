/* Records the run of any trainer as a file that `verbatim verify`, `diff` and `show` read. C99 and
 * C++.
 *
 * A run's record has a row per recorded step, and a layer per named tensor of the model. Of tensors
 * it keeps digests (16 bytes each), never their values. Guide and example: docs/c.md, examples/c.
 *
 * Functions return VERBATIM_OK or what went wrong; nothing that a caller passes ends the program,
 * but pointers must be valid for the sizes that stand beside them, and are not kept after the call.
 * Texts are UTF-8 and end with a null; a null pointer is an empty text. All functions may be called
 * from any thread; the calls about one recorder are taken one after another. In a child of fork,
 * calls about a recorder of its parent are refused. */
#ifndef VERBATIM_RECORDER_H
#define VERBATIM_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VERBATIM_API __attribute__((visibility("default")))
#else
#define VERBATIM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results */

/* The same numbers as the exit codes of the command. */
enum {
  VERBATIM_OK = 0,
  VERBATIM_USAGE = 2,     /* what was passed makes no sense; nothing has changed */
  VERBATIM_BAD_INPUT = 3, /* a file is damaged or of an unknown version */
  VERBATIM_FAILED = 4     /* disk, lock, permission, memory */
};

/* Version of the library, "0.1.0". */
VERBATIM_API const char* verbatim_version(void);

/* What the last call of this thread that did not return VERBATIM_OK had to say: what is wrong, and
 * what to do about it (or ""). They live until the thread's next such call. */
VERBATIM_API const char* verbatim_message(void);
VERBATIM_API const char* verbatim_hint(void);

/* ---- Digests */

/* XXH3-128 in its canonical byte order (docs/format.md, "Digests"). */
typedef struct verbatim_digest {
  uint8_t bytes[16];
} verbatim_digest;

enum verbatim_dtype {
  VERBATIM_FLOAT32 = 1,
  VERBATIM_FLOAT64 = 2,
  VERBATIM_FLOAT16 = 3,
  VERBATIM_BFLOAT16 = 4,
  VERBATIM_INT64 = 5,
  VERBATIM_INT32 = 6,
  VERBATIM_UINT8 = 7,
  VERBATIM_BOOL = 8,
  VERBATIM_INT8 = 9,
  VERBATIM_INT16 = 10,
  VERBATIM_UINT16 = 11,
  VERBATIM_UINT32 = 12,
  VERBATIM_UINT64 = 13,
  VERBATIM_COMPLEX32 = 14,
  VERBATIM_COMPLEX64 = 15,
  VERBATIM_COMPLEX128 = 16,
  VERBATIM_FLOAT8_E4M3FN = 17,
  VERBATIM_FLOAT8_E5M2 = 18,
  VERBATIM_FLOAT8_E4M3FNUZ = 19,
  VERBATIM_FLOAT8_E5M2FNUZ = 20,
  VERBATIM_FLOAT8_E8M0FNU = 21
};

/* A tensor in host memory: contiguous, row-major, little-endian, any alignment. */
typedef struct verbatim_tensor {
  const char* name;     /* in a digest of named tensors */
  const void* data;     /* may be null where there are no bytes */
  size_t bytes;         /* must be what dtype and shape ask for */
  int32_t dtype;        /* an enum verbatim_dtype */
  const int64_t* shape; /* `rank` of them; a scalar has rank 0 */
  size_t rank;
} verbatim_tensor;

/* Of one tensor; its name is not part of it. For weights, buffers, gradients, captured tensors. */
VERBATIM_API int verbatim_digest_tensor(const verbatim_tensor* tensor, verbatim_digest* digest);
/* Of named tensors, whose order counts. For batches, optimizer state, random states. */
VERBATIM_API int verbatim_digest_tensors(const verbatim_tensor* tensors, size_t count,
                                         verbatim_digest* digest);

/* ---- A run */

enum verbatim_layer_kind {
  VERBATIM_PARAMETER = 0, /* may have gradients and optimizer state */
  VERBATIM_BUFFER = 1,    /* batch-norm statistics, counters */
  VERBATIM_CAPTURED = 2   /* a tensor that a step makes, such as an activation; level "full" */
};

/* A layer's number is its place in the list that a recorder is opened with. */
typedef struct verbatim_layer {
  int32_t kind;     /* an enum verbatim_layer_kind */
  int32_t dtype;    /* an enum verbatim_dtype */
  const char* name; /* unique */
  const int64_t* shape;
  size_t rank;
  const char* placement;   /* how it is a part of a larger tensor, in words; or null */
  const char* const* also; /* other names of the same tensor (tied weights) */
  size_t also_count;
  verbatim_digest initial; /* before the first step; of a captured one it means nothing */
} verbatim_layer;

/* Begin with verbatim_run_init: fields that a later version adds are then as they were before. */
typedef struct verbatim_run {
  size_t struct_bytes;
  const char* name; /* for people */
  int has_seed;
  uint64_t seed;
  int64_t every;         /* of so many steps one is recorded: 1 */
  int64_t steps_planned; /* that will be recorded: 0, not known */
  int64_t rank;          /* this process among world_size, each with a record of its own: 0 of 1 */
  int64_t world_size;
  const char* record_level;     /* "losses", "weights", "full": "weights" */
  int optimizer_state;          /* whether parameters may have digests of it: 1 */
  int gradients;                /* likewise, at level "full": 0 */
  const char* settings_json;    /* an object of strings, numbers and booleans: none */
  const char* environment_json; /* likewise: versions, devices, whatever results depend on */
  const char* device;           /* "cpu" */
  const char* command_line;
  const char* folder;    /* where the run was started: the working folder */
  int overwrite;         /* whether it may take the place of an older record: 0 */
  const char* head_file; /* heads of the record are added to this file: none */
  int64_t head_every;    /* after so many recorded steps; 0: only at the end */
} verbatim_run;

/* `struct_bytes` is sizeof(verbatim_run). */
VERBATIM_API void verbatim_run_init(verbatim_run* run, size_t struct_bytes);

/* ---- A step */

/* Which digests a layer has. */
enum { VERBATIM_WEIGHTS = 1, VERBATIM_OPTIMIZER_STATE = 2, VERBATIM_GRADIENTS = 4 };

/* What a step left of one parameter or buffer. */
typedef struct verbatim_layer_digests {
  int32_t layer;
  int32_t present; /* sum of the enumerators above; VERBATIM_WEIGHTS always */
  verbatim_digest weights;
  verbatim_digest optimizer_state; /* where there is any yet */
  verbatim_digest gradients;       /* where there is any */
} verbatim_layer_digests;

typedef struct verbatim_captured {
  int32_t layer;
  int32_t occurrence; /* within the step: 0, 1, … */
  verbatim_digest digest;
} verbatim_captured;

/* Begin with verbatim_step_init. */
typedef struct verbatim_step {
  size_t struct_bytes;
  int64_t step; /* by the trainer's own count; must ascend */
  int has_loss;
  float loss;
  const verbatim_digest* batch; /* of its named tensors: none */
  const verbatim_digest* parts; /* of the batch's parts, where it has several */
  size_t part_count;
  const verbatim_digest* random_state; /* of all generators, before the step: none */
  const char* settings_json;           /* learning rates, …: an object as in verbatim_run */
  const int32_t* outside;              /* layers that something else than the update before wrote */
  size_t outside_count;
  /* Every parameter and buffer, ascending; at level "losses" none. */
  const verbatim_layer_digests* layers;
  size_t layer_count;
  const verbatim_captured* captured;
  size_t captured_count;
} verbatim_step;

/* `struct_bytes` is sizeof(verbatim_step). */
VERBATIM_API void verbatim_step_init(verbatim_step* step, size_t struct_bytes);

/* ---- The recorder */

typedef struct verbatim_recorder verbatim_recorder;

enum verbatim_end {
  VERBATIM_COMPLETE = 0,
  VERBATIM_INTERRUPTED = 1, /* stopped on request */
  VERBATIM_ERROR = 2        /* stopped by an error */
};

/* Creates the record and a thread that writes it. A file has one recorder at a time. `*recorder` is
 * null where it fails. */
VERBATIM_API int verbatim_recorder_open(const char* path, const verbatim_run* run,
                                        const verbatim_layer* layers, size_t layer_count,
                                        verbatim_recorder** recorder);
/* Digest of a parameter's or buffer's weights or gradients, whose bytes must be as many as its
 * dtype and shape asked for when the recorder was opened. */
VERBATIM_API int verbatim_recorder_digest(const verbatim_recorder* recorder, int32_t layer,
                                          const void* data, size_t bytes, verbatim_digest* digest);
/* Records one step: hands it to the writer's thread, and waits where the disk is slower than the
 * training. Once the record cannot be written, every call says so. */
VERBATIM_API int verbatim_recorder_record(verbatim_recorder* recorder, const verbatim_step* step);
/* Writes everything safely to the disk, with how the run ended (an enum verbatim_end), and closes
 * the file; `detail` says why it was interrupted or failed. Afterwards the recorder can only be
 * freed. */
VERBATIM_API int verbatim_recorder_close(verbatim_recorder* recorder, int end, const char* detail);
/* Of a recorder that was not closed: commits what was recorded and leaves the run as "running".
 * Takes a null pointer too. Every pointer that verbatim_recorder_open gave must come here once. */
VERBATIM_API void verbatim_recorder_free(verbatim_recorder* recorder);

#ifdef __cplusplus
}
#endif

#endif
