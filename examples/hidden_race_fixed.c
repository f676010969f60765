/* hidden_race.c, fixed: the fee is taken before the lock is let go. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static int audits;

static void *deposit(void *nothing) {
    pthread_mutex_lock(&lock);
    balance += 50;
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void *audit(void *nothing) {
    usleep(20000); /* the audit is due at the end of the day */
    pthread_mutex_lock(&lock);
    audits++;
    balance -= 1; /* the fee */
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t teller, auditor;
    pthread_create(&teller, NULL, deposit, NULL);
    pthread_create(&auditor, NULL, audit, NULL);
    pthread_join(teller, NULL);
    pthread_join(auditor, NULL);
    printf("balance %d after %d audit\n", balance, audits);
    return 0;
}
