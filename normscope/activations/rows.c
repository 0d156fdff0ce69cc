/* Rows of an activation -> mean, variance, and the largest magnitude with its place, of each row.
 *
 * A row is read once, in float32, while the one after it is fetched. Where its squared mean is over
 * three times its variance, or its squares leave float32's range, it is read again in float64. No
 * library is linked: the threads are those of the OpenMP that torch has loaded, and they share the
 * rows as in torch's own operations, so that each finds in its cache what it computed.
 */

#ifdef __clang__
#error "clang's OpenMP is not the one that torch has loaded"
#endif

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12
#define FOR_EVERY_PROCESSOR \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(__x86_64__) && defined(__GLIBC__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif
#define INLINED static inline __attribute__((always_inline))

enum {
    LANES = 16,             /* columns that are taken side by side: what a processor has room for */
    EXACT_LANES = 8,        /* the same in float64 */
    BLOCK = 1024,           /* values after which a float64 takes over what float32 has added */
    GRAIN = 1 << 15,        /* values from which on it pays to wake a thread, as in torch */
    LINE = 64,              /* bytes that memory gives at once */
    MAGNITUDE = 0x7fffffff, /* the bits of a float32 without its sign have the order of its size */
    EXPONENTS = 112 << 23,  /* from a float16's exponent to a float32's: 127 - 15 */
    LEAST_NORMAL = 1 << 23, /* a float16 whose exponent is not zero, in the place of a float32 */
    LEAST_INFINITE = 31 << 23,
};

/* Means of squares of which float32 lost nothing, and the share of the variance in one from which
 * on five digits are left when the squared mean is taken away. */
static const double LEAST_SQUARE = 1e-27, MOST_SQUARE = 1e33, LEAST_SHARE = 0.25;

enum stored { FLOAT32, BFLOAT16, FLOAT16 };

struct moments {
    double mean;
    double variance;
    int64_t place; /* the first that has these bits */
    int32_t bits;  /* those of the peak: comparable where it is NaN */
};

INLINED int32_t bits_of(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INLINED float float_of(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A subnormal is a normal float32: it is never one in between, which a processor might flush. */
INLINED float from_float16(uint16_t half) {
    int32_t moved = (half & 0x7fff) << 13;
    int32_t normal = moved + EXPONENTS + (moved >= LEAST_INFINITE ? EXPONENTS : 0);
    int32_t subnormal = bits_of(float_of(moved + EXPONENTS + LEAST_NORMAL) - 0x1p-14f);
    int32_t bits = moved >= LEAST_NORMAL ? normal : subnormal;
    return float_of(bits | (int32_t)((uint32_t)(half & 0x8000) << 16));
}

INLINED float at(const void *row, enum stored stored, int64_t place) {
    if (stored == FLOAT32)
        return ((const float *)row)[place];
    uint16_t half = ((const uint16_t *)row)[place];
    return stored == FLOAT16 ? from_float16(half) : float_of((int32_t)((uint32_t)half << 16));
}

INLINED double sum_of(const float lanes[LANES]) {
    double sums[8] = {0};
    for (int lane = 0; lane < LANES; lane += 8)
        for (int part = 0; part < 8; part++)
            sums[part] += lanes[lane + part];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
           ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* What one pass over a row gathers; a lane is every 16th value. */
struct lanes {
    float sums[LANES];
    float squares[LANES];
    int32_t most[LANES];
    int32_t where[LANES]; /* place of the lane's first value in the step that had the most */
};

INLINED void take_value(struct lanes *lanes, int lane, float value, int64_t step) {
    int32_t magnitude = bits_of(value) & MAGNITUDE;
    int larger = magnitude > lanes->most[lane];
    lanes->sums[lane] += value;
    lanes->squares[lane] += value * value;
    lanes->most[lane] = larger ? magnitude : lanes->most[lane];
    lanes->where[lane] = larger ? (int32_t)step : lanes->where[lane];
}

INLINED void take_peak(const struct lanes *lanes, struct moments *found) {
    found->bits = 0;
    for (int lane = 0; lane < LANES; lane++)
        found->bits = lanes->most[lane] > found->bits ? lanes->most[lane] : found->bits;
    int32_t place = INT32_MAX;
    for (int lane = 0; lane < LANES; lane++) {
        int32_t here = lanes->most[lane] == found->bits ? lanes->where[lane] + lane : INT32_MAX;
        place = here < place ? here : place;
    }
    found->place = place;
}

/* The sum of (x - centre), or of its square, in float64. */
INLINED double exact_sum(const void *row, enum stored stored, int64_t length, double centre,
                         int squared) {
    double sums[EXACT_LANES] = {0}, sum = 0;
    int64_t place = 0;
    for (; place + EXACT_LANES <= length; place += EXACT_LANES)
        for (int lane = 0; lane < EXACT_LANES; lane++) {
            double left = at(row, stored, place + lane) - centre;
            sums[lane] += squared ? left * left : left;
        }
    for (int lane = 0; place + lane < length; lane++) {
        double left = at(row, stored, place + lane) - centre;
        sums[lane] += squared ? left * left : left;
    }
    for (int lane = 0; lane < EXACT_LANES; lane++)
        sum += sums[lane];
    return sum;
}

INLINED struct moments measured(const void *row, enum stored stored, int64_t length) {
    const int64_t size = stored == FLOAT32 ? sizeof(float) : sizeof(uint16_t);
    const uintptr_t next = (uintptr_t)row + length * size; /* behind the last row is nothing */
    struct lanes lanes = {0};
    double sum = 0, squares = 0;
    for (int64_t place = 0; place < length;) {
        int64_t end = place + BLOCK < length ? place + BLOCK : length;
        for (; place + LANES <= end; place += LANES) {
            for (int64_t byte = 0; byte < LANES * size; byte += LINE)
                __builtin_prefetch((const void *)(next + place * size + byte));
            for (int lane = 0; lane < LANES; lane++)
                take_value(&lanes, lane, at(row, stored, place + lane), place);
        }
        for (int lane = 0; place + lane < end; lane++)
            take_value(&lanes, lane, at(row, stored, place + lane), place);
        place = end;
        sum += sum_of(lanes.sums);
        squares += sum_of(lanes.squares);
        memset(lanes.sums, 0, sizeof lanes.sums);
        memset(lanes.squares, 0, sizeof lanes.squares);
    }
    struct moments found;
    take_peak(&lanes, &found);
    double square = squares / (double)length;
    found.mean = sum / (double)length;
    found.variance = square - found.mean * found.mean;
    int safe = square > LEAST_SQUARE && square < MOST_SQUARE &&
               found.variance > LEAST_SHARE * square;
    if (!safe) { /* NaN fails every comparison */
        found.mean = exact_sum(row, stored, length, 0, 0) / (double)length;
        found.variance = exact_sum(row, stored, length, found.mean, 1) / (double)length;
    }
    return found;
}

FOR_EVERY_PROCESSOR static struct moments of_float32(const void *row, int64_t length) {
    return measured(row, FLOAT32, length);
}

FOR_EVERY_PROCESSOR static struct moments of_bfloat16(const void *row, int64_t length) {
    return measured(row, BFLOAT16, length);
}

FOR_EVERY_PROCESSOR static struct moments of_float16(const void *row, int64_t length) {
    return measured(row, FLOAT16, length);
}

INLINED int32_t measure_row(const void *row, enum stored stored, int64_t length, int64_t count,
                            double *column) {
    struct moments found = stored == FLOAT32    ? of_float32(row, length)
                           : stored == BFLOAT16 ? of_bfloat16(row, length)
                                                : of_float16(row, length);
    column[0] = found.mean;
    column[count] = found.variance;
    column[2 * count] = float_of(found.bits);
    ((int64_t *)column)[3 * count] = found.place;
    return found.bits;
}

/* Measure `count` rows of `length` values, at most 2^31 - 1, one after the other in memory, of one
 * activation or, where `others` is not NULL, of two: one call costs less than two.
 *
 * `columns` has room for the means, the variances, the peaks and the places of the rows: four times
 * `count` numbers of 64 bits, the last integers; and the same again for the other activation.
 * Returns the largest peak of all; NaN is above infinity. The number in the name goes up with every
 * change of this line, so that a library that was left over is not called.
 */
double normscope_measure_rows_1(const char *values, const char *others, int32_t stored, int64_t count,
                                int64_t length, double *columns) {
    const char *activations[] = {values, others};
    int64_t size = length * (stored == FLOAT32 ? sizeof(float) : sizeof(uint16_t));
    int32_t largest = 0;
#pragma omp parallel reduction(max : largest) if (count * length > GRAIN)
    for (int which = 0; which < 2 && activations[which]; which++) {
#pragma omp for schedule(static) nowait
        for (int64_t index = 0; index < count; index++) {
            const char *row = activations[which] + index * size;
            double *column = columns + 4 * count * which + index;
            int32_t bits = measure_row(row, stored, length, count, column);
            largest = bits > largest ? bits : largest;
        }
    }
    return float_of(largest);
}
