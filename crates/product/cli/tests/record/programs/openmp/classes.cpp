// C++: objects that tasks copy, reductions that the program declares, exceptions.
#include "cases.h"
#include <vector>

struct Copied {
    int value;
    Copied() : value(1) {}
    Copied(const Copied &other) : value(other.value + 1) {}
    ~Copied() { value = 0; }
};
static std::vector<int> numbers;

static std::vector<int> joined(std::vector<int> some, const std::vector<int> &more) {
    some.insert(some.end(), more.begin(), more.end());
    return some;
}
#pragma omp declare reduction(join : std::vector<int> : omp_out = joined(omp_out, omp_in))

static void ok_copies() {
    Copied copied;
#pragma omp parallel firstprivate(copied)
#pragma omp single
    for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(copied)
        a[i] = copied.value++;
    }
}
static void ok_declared_reduction() {
    std::vector<int> all;
#pragma omp parallel for reduction(join : all)
    for (int i = 0; i < N; i++)
        all.push_back(i);
    x = (int)all.size();
}
static void race_vector() {
    numbers.reserve(64);
#pragma omp parallel
    numbers.push_back(omp_get_thread_num());
}
static void ok_exceptions() {
#pragma omp parallel
    {
#pragma omp task
        {
            try {
                throw 1;
            } catch (int value) {
#pragma omp atomic
                x += value;
            }
        }
    }
}
static void race_reference() {
    int &alias = x;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        alias = i;
}

RUN(CASE(ok_copies), CASE(ok_declared_reduction), CASE(race_vector), CASE(ok_exceptions),
    CASE(race_reference))
