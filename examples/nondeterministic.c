/* No race, and still a result that depends on who comes first.
 *
 * Wrong: two threads combine their parts with what is there, in the order in which they get the lock,
 * and the order matters: 3 then 4 gives 34, 4 then 3 gives 43.
 * An ordinary run: the first part takes less time, and the result is the same every time.
 * reweave: `check` alone finds nothing, rightly: no race, no deadlock. `check --with determinism` says
 * that reading `result` can see another write than it saw.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int result;

static void combine(int part) {
    pthread_mutex_lock(&lock);
    result = result * 10 + part;
    pthread_mutex_unlock(&lock);
}

static void *quick(void *nothing) {
    combine(3);
    return nothing;
}

static void *slow(void *nothing) {
    usleep(20000);
    combine(4);
    return nothing;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, quick, NULL);
    pthread_create(&two, NULL, slow, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("result %d\n", result);
    return 0;
}
