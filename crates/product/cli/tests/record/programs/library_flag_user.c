// One thread writes and sets a flag of a library, the other waits for the flag and reads.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

void set_flag(void);
int is_flag_set(void);

static int message;

static void *give(void *unused) {
    message = 5;
    set_flag();
    return unused;
}

int main(void) {
    pthread_t giver;
    pthread_create(&giver, 0, give, 0);
    while (!is_flag_set()) sched_yield();
    printf("%d\n", message);
    pthread_join(giver, 0);
    return 0;
}
