// test_solve_kernel.cpp - cuda/kernels/solve.cuh, run on the host: every form of D (by rows or
// columns, counted from either end, aligned or not, conjugated, of a unit diagonal, of any
// scaling) against the bound of substitution, and what it may neither read nor write.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "host_device.h"

#include "cuda/kernels/solve.cuh"

extern "C" {
#include "support/check.h"
}

namespace {

using number = std::complex<long double>;
check_random rng;

struct form {
  int n, n_columns;
  bool by_rows, flipped, conj, unit, sides_by_rows, aligned, backwards;
  int scaling; // rows and columns of D by powers of two up to this exponent
  int extreme; // rows of D and of the right-hand sides by this power of two, or its reciprocal: those of the
               // diagonal leave the range
};

template <class Type> number value_of(const typename Type::element &x) {
  if constexpr (Type::unit == 1)
    return {x, 0};
  else
    return {x.x, x.y};
}
template <class Type> typename Type::element element_of(number x) {
  using real = typename Type::real;
  if constexpr (Type::unit == 1)
    return real(x.real());
  else
    return {real(x.real()), real(x.imag())};
}
long double size_of(number x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

template <class Type> number drawn() {
  const long double re = check_random_unit(&rng) * 2 - 1, im = check_random_unit(&rng) * 2 - 1;
  return value_of<Type>(element_of<Type>({re, Type::unit == 1 ? 0 : im}));
}

// A matrix with steps of its own, filled with NaN.
template <class Type> struct matrix {
  using element = typename Type::element;
  std::vector<element> memory;
  int64_t row, column, origin;
  matrix(int n_rows, int n_columns, bool by_rows, bool flipped, bool aligned) {
    const int64_t length = by_rows ? n_rows : n_columns, ld = (length + 7) / 4 * 4 + (aligned ? 0 : 1);
    memory.resize(
        size_t(ld * (by_rows ? n_columns : n_rows) + 8),
        element_of<Type>({std::numeric_limits<long double>::quiet_NaN(), std::numeric_limits<long double>::quiet_NaN()}));
    row = by_rows ? 1 : ld, column = by_rows ? ld : 1, origin = aligned ? 0 : 1;
    while (aligned && reinterpret_cast<uintptr_t>(&memory[size_t(origin)]) % 16) origin++;
    if (flipped) {
      origin += (n_rows - 1) * row + (n_columns == n_rows ? (n_columns - 1) * column : 0), row = -row;
      if (n_columns == n_rows) column = -column;
    }
  }
  element &at(int i, int j) { return memory[size_t(origin + i * row + j * column)]; }
};

template <class Type> void check_form(const form &f) {
  using element = typename Type::element;
  const long double u = sizeof(typename Type::real) == 4 ? 0x1p-24L : 0x1p-53L;
  matrix<Type> d(f.n, f.n, f.by_rows, f.flipped, f.aligned), x(f.n, f.n_columns, f.sides_by_rows, false, f.aligned);
  if (f.flipped) { // as for an upper triangle: right-hand sides are counted from the last row, too
    x.origin += (f.n - 1) * x.row, x.row = -x.row;
  }
  const auto row_factor = [&](int i) { return std::exp2((long double)(i % 3 == 0 ? f.extreme : i % 3 == 1 ? -f.extreme : 0)); };
  for (int i = 0; i < f.n; i++)
    for (int j = 0; j <= i; j++) {
      number value = i == j ? drawn<Type>() + number(i % 2 ? 2 : -2) : drawn<Type>() * number(4.0L / (f.n + 4));
      value *= std::exp2(std::floor(f.scaling * std::sin(7.0L * i))) * std::exp2(std::floor(f.scaling * std::cos(5.0L * j)));
      if (i != j || !f.unit) d.at(i, j) = element_of<Type>(value * row_factor(i));
    }
  std::vector<number> given(size_t(f.n * f.n_columns));
  for (int c = 0; c < f.n_columns; c++)
    for (int i = 0; i < f.n; i++) {
      given[size_t(c * f.n + i)] = drawn<Type>() * row_factor(i);
      x.at(i, c) = element_of<Type>(given[size_t(c * f.n + i)]);
    }
  ws_triangle_args args = {};
  args.work = WS_TRIANGLE_SOLVE, args.structure = f.unit ? WS_UNIT_TRIANGULAR : WS_TRIANGULAR, args.is_lower = 1;
  args.conj = f.conj, args.d_vectors = f.aligned && f.by_rows, args.n = f.n, args.n_columns = f.n_columns, args.n_batch = 1;
  args.d = &d.at(0, 0), args.x = &x.at(0, 0);
  args.of_d = {d.row, d.column, 0}, args.of_x = {x.row, x.column, 0};
  if constexpr (sizeof(typename Type::real) == 4)
    args.alpha.s[0] = 0.5f;
  else
    args.alpha.d[0] = 0.5;
  using solver = ws::solver<Type>;
  using shape = ws::solve_shape<Type>;
  const int n_padded = (f.n + solver::rows_n - 1) / solver::rows_n * solver::rows_n, most_columns = solver::columns;
  const int shared_bytes =
      int(sizeof(element)) * (shape::warps * (shape::ring * shape::own_k * solver::own_pitch + 16 * solver::sum_pitch) +
                              shape::d_places * solver::d_size + n_padded * solver::x_pitch);
  const ws::scaling<ws::triangle_config<Type>> scale = ws::triangle_scaling<ws::triangle_config<Type>>(args);
  std::vector<element> before = x.memory;
  const uint32_t n_items = uint32_t((f.n_columns + most_columns - 1) / most_columns);
  CHECK(host_run_block(solver::n_threads, shared_bytes, f.backwards,
                       [&] {
                         solver own(args, host_shared);
                         for (uint32_t item = 0; item < n_items; item++) own.run(item, scale);
                       }),
        "barriers differ");
  for (int c = 0; c < f.n_columns; c++)
    for (int i = 0; i < f.n; i++) {
      number sum = 0.5L * given[size_t(c * f.n + i)];
      long double bound = 0;
      for (int j = 0; j <= i; j++) {
        number of_d = i == j && f.unit ? number(1) : value_of<Type>(d.at(i, j));
        if (f.conj) of_d = std::conj(of_d);
        const number value = value_of<Type>(x.at(j, c));
        sum -= of_d * value, bound += size_of(of_d) * size_of(value);
      }
      const long double error = size_of(sum), k = (Type::unit * (f.n + 2)) * u;
      CHECK(error <= 8 * k / (1 - k) * bound, "n %d, row %d, column %d: residual %Lg, bound %Lg", f.n, i, c, error,
            8 * k / (1 - k) * bound);
      before[size_t(x.origin + i * x.row + c * x.column)] = x.at(i, c);
    }
  CHECK(memcmp(before.data(), x.memory.data(), before.size() * sizeof(element)) == 0, "n %d: written beside the matrix", f.n);
}

template <class Type> void check_forms() {
  static const int sizes[] = {1, 5, 31, 32, 33, 64, 100, 128, 161, 256};
  rng = check_random_from(61);
  for (int s = 0; s < 10; s++)
    for (int i = 0; i < 16; i++) {
      if (check_random_in(&rng, 1, check_scale()) > 2) continue;
      form f = {};
      f.n = sizes[s], f.n_columns = check_random_in(&rng, 0, 1) ? 3 : 35;
      f.by_rows = i & 1, f.flipped = i & 2, f.sides_by_rows = i & 4, f.aligned = i & 8;
      f.conj = Type::unit == 2 && check_random_in(&rng, 0, 1), f.backwards = check_random_in(&rng, 0, 1);
      f.unit = check_random_in(&rng, 0, 3) == 0;
      if (!f.unit && check_random_in(&rng, 0, 1)) f.scaling = sizeof(typename Type::real) == 4 ? 12 : 60;
      if (!f.unit && f.scaling == 0) f.extreme = sizeof(typename Type::real) == 4 ? 112 : 1010;
      check_form<Type>(f);
    }
}

void s() { check_forms<ws::type_s>(); }
void d() { check_forms<ws::type_d>(); }
void c() { check_forms<ws::type_c>(); }
void z() { check_forms<ws::type_z>(); }

const check_case cases[] = {{"s", s}, {"d", d}, {"c", c}, {"z", z}};

} // namespace

int main(int argc, char **argv) { return check_main("solve_kernel", cases, sizeof cases / sizeof cases[0], argc, argv); }
