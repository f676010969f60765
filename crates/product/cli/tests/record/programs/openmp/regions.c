// Regions, barriers, critical sections, atomic updates, locks, data of threads.
#include "cases.h"

static int mine;
#pragma omp threadprivate(mine)
static float wide;

static void ok_private(void) {
    int first = 3;
#pragma omp parallel firstprivate(first)
    {
        first += omp_get_thread_num();
        a[omp_get_thread_num()] = first;
    }
    use(a[1]);
}
static void race_shared(void) {
#pragma omp parallel
    x++;
}
static void ok_barrier(void) {
#pragma omp parallel
    {
        a[omp_get_thread_num()] = 1;
#pragma omp barrier
        use(a[(omp_get_thread_num() + 1) % omp_get_num_threads()]);
#pragma omp barrier
        a[omp_get_thread_num()] = 2;
    }
}
static void race_no_barrier(void) {
#pragma omp parallel
    {
        a[omp_get_thread_num()] = 1;
        use(a[(omp_get_thread_num() + 1) % omp_get_num_threads()]);
    }
}
static void race_after_barrier(void) {
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            x = 1;
#pragma omp barrier
        if (omp_get_thread_num() == 1)
            x = 2;
        use(x);
    }
}
static void ok_two_regions(void) {
#pragma omp parallel
    a[omp_get_thread_num()] = 1;
#pragma omp parallel
    a[(omp_get_thread_num() + 1) % omp_get_num_threads()]++;
}
static void ok_serial(void) {
#pragma omp parallel if (0)
    x++;
#pragma omp parallel num_threads(1)
    x++;
}
static void ok_critical(void) {
#pragma omp parallel
    {
#pragma omp critical
        x++;
#pragma omp critical(named)
        y++;
    }
}
static void race_two_criticals(void) {
#pragma omp parallel
    if (omp_get_thread_num() % 2) {
#pragma omp critical(one)
        x++;
    } else {
#pragma omp critical(other)
        x++;
    }
}
static void race_after_critical(void) {
#pragma omp parallel
    {
#pragma omp critical
        x++;
        use(x);
    }
}
static void ok_atomic(void) {
#pragma omp parallel
    {
        int seen;
#pragma omp atomic
        x++;
#pragma omp atomic capture
        seen = y++;
#pragma omp atomic
        wide += seen;
    }
}
static void race_atomic_and_plain(void) {
#pragma omp parallel
    if (omp_get_thread_num() == 0) {
        x = 1;
    } else {
#pragma omp atomic
        x++;
    }
}
static void ok_master(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
#pragma omp barrier
        use(x);
    }
}
static void race_master(void) {
#pragma omp parallel
    {
#pragma omp master
        x = 1;
        use(x);
    }
}
static void ok_single(void) {
#pragma omp parallel
    {
#pragma omp single
        x = 1;
        use(x);
    }
}
static void race_single_nowait(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        x = 1;
        use(x);
    }
}
static void ok_copyprivate(void) {
    int got;
#pragma omp parallel private(got)
    {
#pragma omp single copyprivate(got)
        got = x = 5;
        a[omp_get_thread_num()] = got + x;
    }
}
static void ok_threadprivate(void) {
    mine = 1;
#pragma omp parallel copyin(mine)
    mine += omp_get_thread_num();
#pragma omp parallel
    mine++;
}
static void race_threadprivate_shared(void) {
    int *first = &mine;
#pragma omp parallel
    ++*first;
}
static void ok_nested(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
        sum += omp_get_thread_num();
        a[omp_get_thread_num()] = sum;
    }
}
static void race_nested(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int sum = 0;
#pragma omp parallel num_threads(2)
        sum++;
        use(sum);
    }
}
static void ok_locks(void) {
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel
    {
        omp_set_lock(&lock);
        x++;
        omp_unset_lock(&lock);
        while (!omp_test_lock(&lock)) {
        }
        x++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        y++;
        omp_unset_nest_lock(&nest);
        y++;
        omp_unset_nest_lock(&nest);
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}
static void race_two_locks(void) {
    omp_lock_t locks[2];
    omp_init_lock(&locks[0]);
    omp_init_lock(&locks[1]);
#pragma omp parallel
    {
        omp_lock_t *lock = &locks[omp_get_thread_num() % 2];
        omp_set_lock(lock);
        x++;
        omp_unset_lock(lock);
    }
}
static void ok_reduction(void) {
    int sum = 0, least = 9;
#pragma omp parallel reduction(+ : sum) reduction(min : least)
    {
        sum += omp_get_thread_num();
        least = omp_get_thread_num();
    }
    x = sum + least;
}

RUN(CASE(ok_private), CASE(race_shared), CASE(ok_barrier), CASE(race_no_barrier),
    CASE(race_after_barrier), CASE(ok_two_regions), CASE(ok_serial), CASE(ok_critical),
    CASE(race_two_criticals), CASE(race_after_critical), CASE(ok_atomic),
    CASE(race_atomic_and_plain), CASE(ok_master), CASE(race_master), CASE(ok_single),
    CASE(race_single_nowait), CASE(ok_copyprivate), CASE(ok_threadprivate),
    CASE(race_threadprivate_shared), CASE(ok_nested), CASE(race_nested), CASE(ok_locks),
    CASE(race_two_locks), CASE(ok_reduction))
