// Explicit tasks, and what waits for them.
#include "cases.h"

static int mine;
#pragma omp threadprivate(mine)

#define TEAM _Pragma("omp parallel") _Pragma("omp single")

static void ok_taskwait(void) {
    TEAM {
#pragma omp task
        x = 1;
#pragma omp taskwait
        use(x);
    }
}
static void race_no_taskwait(void) {
    TEAM {
#pragma omp task
        x = 1;
        use(x);
    }
}
static void race_siblings(void) {
    TEAM {
#pragma omp task
        x++;
#pragma omp task
        x++;
    }
}
static void ok_barrier_ends_tasks(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        {
#pragma omp task
            x = 1;
        }
#pragma omp barrier
        use(x);
    }
    x = 2;
}
static void race_grandchild(void) {
    TEAM {
#pragma omp task
        {
#pragma omp task
            x = 1;
        }
#pragma omp taskwait
        use(x);
    }
}
static void ok_taskgroup(void) {
    TEAM {
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp task
                x = 1;
            }
        }
        use(x);
    }
}
static void race_before_taskgroup(void) {
    TEAM {
#pragma omp task
        x = 1;
#pragma omp taskgroup
        {
#pragma omp task
            y = 1;
        }
        use(x);
    }
}
static void ok_undeferred(void) {
    TEAM {
#pragma omp task if (0)
        x = 1;
        use(x);
#pragma omp task final(1) if (0)
        {
#pragma omp task
            y = 1;
            use(y);
        }
    }
}
static void race_final(void) {
    TEAM {
#pragma omp task final(1)
        x = 1;
        use(x);
    }
}
static void ok_firstprivate(void) {
    TEAM for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(i)
        {
            int before = i;
            i *= 2;
            a[before] = i;
        }
    }
}
static void race_shared_index(void) {
    TEAM for (x = 0; x < N; x++) {
#pragma omp task
        use(x);
    }
}
static void ok_depend(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(in : x) depend(out : a[0])
        a[0] = x;
#pragma omp task depend(in : x) depend(out : a[1])
        a[1] = x;
#pragma omp task depend(inout : x) depend(in : a[0], a[1])
        x = a[0] + a[1];
    }
}
static void race_depend_missing(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(in : y)
        use(x);
    }
}
static void race_depend_in(void) {
    TEAM {
#pragma omp task depend(in : x)
        x++;
#pragma omp task depend(in : x)
        x++;
    }
}
static void race_depend_cousins(void) {
    TEAM {
#pragma omp task
        {
#pragma omp task depend(out : x)
            x = 1;
        }
#pragma omp task
        {
#pragma omp task depend(out : x)
            x = 2;
        }
    }
}
static void ok_depend_undeferred(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(in : x) if (0)
        use(x);
        use(x);
    }
}
static void ok_taskwait_depend(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp taskwait depend(in : x)
        use(x);
    }
}
static void race_taskwait_depend(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(out : y)
        y = 1;
#pragma omp taskwait depend(in : y)
        use(x);
    }
}
static void ok_set(void) {
    TEAM {
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(mutexinoutset : x)
        x++;
#pragma omp task depend(mutexinoutset : x)
        x++;
#pragma omp task depend(in : x)
        use(x);
    }
}
static void ok_taskloop(void) {
    TEAM {
        int first = 1;
#pragma omp taskloop firstprivate(first) grainsize(1)
        for (int i = 0; i < N; i++)
            a[i] = first++;
        use(a[3]);
    }
}
static void race_taskloop(void) {
    TEAM {
#pragma omp taskloop grainsize(1)
        for (int i = 0; i < N; i++)
            x += i;
    }
}
static void race_taskloop_nogroup(void) {
    TEAM {
#pragma omp taskloop grainsize(1) nogroup
        for (int i = 0; i < N; i++)
            a[i] = i;
        use(a[3]);
    }
}
static void ok_task_reduction(void) {
    TEAM {
        int sum = 0;
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < N; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
        x = sum;
    }
}
static void ok_taskloop_reduction(void) {
    TEAM {
        int sum = 0;
#pragma omp taskloop reduction(+ : sum) grainsize(2)
        for (int i = 0; i < N; i++)
            sum += i;
        x = sum;
    }
}
static int fib(int n) {
    int i, j;
    if (n < 2)
        return n;
#pragma omp task shared(i)
    i = fib(n - 1);
#pragma omp task shared(j)
    j = fib(n - 2);
#pragma omp taskwait
    return i + j;
}
static void ok_fib(void) {
    TEAM x = fib(6);
}
static int forgetful(int n) {
    if (n < 2)
        return n;
#pragma omp task
    a[n] = forgetful(n - 1);
    return a[n] + n;
}
static void race_fib(void) {
    TEAM x = forgetful(4);
}
static __attribute__((noinline)) void fill(int *place, int value) {
    for (int i = 0; i < N; i++)
        place[i] = value;
}
static void ok_locals(void) {
    TEAM for (int i = 0; i < 2 * N; i++) {
#pragma omp task firstprivate(i)
        {
            int local[N];
            fill(local, i);
#pragma omp taskyield
            a[i % N < 0] += 0 * local[i % N];
        }
#pragma omp taskwait
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 2 * N; i++) {
#pragma omp task firstprivate(i)
        {
            int local[N];
            fill(local, i);
            use(local[3]);
        }
    }
}
static void ok_threadprivate_tasks(void) {
    TEAM for (int i = 0; i < 2 * N; i++) {
#pragma omp task
        mine++;
    }
}
static void ok_critical_tasks(void) {
    TEAM for (int i = 0; i < N; i++) {
#pragma omp task untied mergeable
        {
#pragma omp critical
            x++;
        }
    }
}
static void race_tasks_of_threads(void) {
#pragma omp parallel
    {
#pragma omp task
        x++;
    }
}

RUN(CASE(ok_taskwait), CASE(race_no_taskwait), CASE(race_siblings), CASE(ok_barrier_ends_tasks),
    CASE(race_grandchild), CASE(ok_taskgroup), CASE(race_before_taskgroup), CASE(ok_undeferred),
    CASE(race_final), CASE(ok_firstprivate), CASE(race_shared_index), CASE(ok_depend),
    CASE(race_depend_missing), CASE(race_depend_in), CASE(race_depend_cousins),
    CASE(ok_depend_undeferred), CASE(ok_taskwait_depend), CASE(race_taskwait_depend), CASE(ok_set),
    CASE(ok_taskloop), CASE(race_taskloop), CASE(race_taskloop_nogroup), CASE(ok_task_reduction),
    CASE(ok_taskloop_reduction), CASE(ok_fib), CASE(race_fib), CASE(ok_locals),
    CASE(ok_threadprivate_tasks), CASE(ok_critical_tasks), CASE(race_tasks_of_threads))
