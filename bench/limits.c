/* What one core of this machine can do: fused multiply-adds a second and bytes copied a second.
   The ratios of `nox -s bench` are against these figures, measured in the same run and by other means than our own
   code generator. Prints two lines: "fma_flops N" and "copy_bytes N" (bytes read plus bytes written). */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define CHAINS 16
typedef float lanes_t __attribute__((vector_size(LANES * 4)));

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Independent chains, enough to hide the latency of one. Named one by one: an array of them would live in memory.
   -ffp-contract=fast makes each step one fma; the empty asm keeps the compiler from joining steps. */
#define EACH(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)

__attribute__((noinline)) static float run_fma(long steps) {
  lanes_t factor = {0}, term = {0}, sum = {0};
  factor += 0.999f;
  term += 1e-3f;
#define START(i) lanes_t chain##i = factor * i##.0f;
  EACH(START)
  for (long step = 0; step < steps; step++) {
#define STEP(i)                        \
  chain##i = chain##i * factor + term; \
  __asm__ volatile("" : "+v"(chain##i));
    EACH(STEP)
  }
#define ADD(i) sum += chain##i;
  EACH(ADD)
  return sum[0];
}

static double fma_flops(void) {
  const long steps = 200000;
  double best = 1e30;
  volatile float sink = 0;
  for (int sample = 0; sample < 40; sample++) {
    double start = seconds();
    sink += run_fma(steps);
    double took = seconds() - start;
    best = took < best ? took : best;
  }
  return 2.0 * LANES * CHAINS * steps / best;
}

static void *pages(size_t bytes) {
  void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "cannot map %zu bytes\n", bytes);
    exit(1);
  }
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  memset(memory, 1, bytes);
  return memory;
}

/* Plain vector loads and stores, as a generated kernel makes them (memcpy may use streaming stores). */
__attribute__((noinline)) static void copy_lanes(lanes_t *to, const lanes_t *from, size_t count) {
  for (size_t i = 0; i < count; i += 4) {
    lanes_t a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
    to[i] = a, to[i + 1] = b, to[i + 2] = c, to[i + 3] = d;
    __asm__ volatile("" ::: "memory");
  }
}

static double copy_bytes(void) {
  const size_t bytes = (size_t)64 << 20;
  lanes_t *from = pages(bytes), *to = pages(bytes);
  double best = 1e30;
  for (int sample = 0; sample < 15; sample++) {
    double start = seconds();
    copy_lanes(to, from, bytes / sizeof(lanes_t));
    double took = seconds() - start;
    best = took < best ? took : best;
  }
  return 2.0 * bytes / best;
}

int main(void) {
  printf("fma_flops %.0f\n", fma_flops());
  printf("copy_bytes %.0f\n", copy_bytes());
  return 0;
}
