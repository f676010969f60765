// Loops and sections that a team shares.
#include "cases.h"

static void ok_static(void) {
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < N; i++)
            a[i] = i;
#pragma omp for
        for (int i = 0; i < N; i++)
            use(a[N - 1 - i]);
    }
}
static void race_nowait(void) {
#pragma omp parallel
    {
#pragma omp for nowait
        for (int i = 0; i < N; i++)
            a[i] = i;
#pragma omp for
        for (int i = 0; i < N; i++)
            use(a[N - 1 - i]);
    }
}
static void ok_nowait_same(void) {
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < N; i++)
            a[i] = i;
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++)
            use(a[i]);
    }
}
static void race_carried(void) {
#pragma omp parallel for
    for (int i = 1; i < N; i++)
        a[i] = a[i - 1] + 1;
}
static void ok_dynamic(void) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < N; i++)
            a[i] = i;
#pragma omp for schedule(guided)
        for (int i = 0; i < N; i++)
            use(a[N - 1 - i]);
#pragma omp for schedule(runtime)
        for (int i = 0; i < N; i++)
            a[i] = i;
    }
}
static void race_dynamic(void) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 4 * N; i++)
        x += i;
}
static void race_shared_temporary(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        x = i;
        a[i] = x;
    }
}
static void ok_lastprivate(void) {
    int last = 0;
#pragma omp parallel for lastprivate(last) schedule(dynamic)
    for (int i = 0; i < N; i++)
        a[i] = last = i;
    x = last;
}
static void ok_collapse(void) {
#pragma omp parallel for collapse(2)
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < N / 2; j++)
            a[i * N / 2 + j] = i + j;
}
static void ok_loop_reduction(void) {
    int sum = 0;
#pragma omp parallel
    {
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += i;
        use(sum);
    }
}
static void race_reduction_nowait(void) {
    int sum = 0;
#pragma omp parallel
    {
#pragma omp for reduction(+ : sum) nowait
        for (int i = 0; i < N; i++)
            sum += i;
        use(sum);
    }
}
static void ok_ordered(void) {
#pragma omp parallel for ordered schedule(dynamic)
    for (int i = 0; i < N; i++) {
        a[i] = i;
#pragma omp ordered
        x = x * 2 + i;
    }
#pragma omp parallel for ordered schedule(static)
    for (int i = 0; i < N; i++) {
#pragma omp ordered
        x += i;
    }
}
static void race_outside_ordered(void) {
#pragma omp parallel for ordered schedule(static, 1)
    for (int i = 0; i < N; i++) {
        x = i;
#pragma omp ordered
        y += i;
    }
}
static void ok_doacross(void) {
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (int i = 1; i < N; i++) {
#pragma omp ordered depend(sink : i - 1)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
}
static void race_doacross(void) {
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (int i = 1; i < N; i++) {
#pragma omp ordered depend(sink : i - 2)
        a[i] = a[i - 1] + 1;
#pragma omp ordered depend(source)
    }
}
static void ok_sections(void) {
#pragma omp parallel
    {
#pragma omp sections
        {
            x = 1;
#pragma omp section
            y = 1;
        }
        use(x + y);
    }
}
static void race_sections(void) {
#pragma omp parallel sections
    {
        x++;
#pragma omp section
        x++;
    }
}
static void race_sections_nowait(void) {
#pragma omp parallel
    {
#pragma omp sections nowait
        {
            x = 1;
#pragma omp section
            y = 1;
        }
        use(x + y);
    }
}

RUN(CASE(ok_static), CASE(race_nowait), CASE(ok_nowait_same), CASE(race_carried), CASE(ok_dynamic),
    CASE(race_dynamic), CASE(race_shared_temporary), CASE(ok_lastprivate), CASE(ok_collapse),
    CASE(ok_loop_reduction), CASE(race_reduction_nowait), CASE(ok_ordered),
    CASE(race_outside_ordered), CASE(ok_doacross), CASE(race_doacross), CASE(ok_sections),
    CASE(race_sections), CASE(race_sections_nowait))
