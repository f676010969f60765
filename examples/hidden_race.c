/* A race that the order of a lock hides.
 *
 * Wrong: `audit` takes the lock and lets it go, and only then writes the balance.
 * An ordinary run: the deposit comes first, so the lock passes from `deposit` to `audit`. A detector
 * that goes by happens-before takes the two writes as ordered, in this run and in each that is like it.
 * reweave: a race between the two lines that write `balance`. If `audit` takes the lock first, nothing
 * keeps its write apart from the deposit.
 */
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
    pthread_mutex_unlock(&lock);
    balance -= 1; /* the fee */
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
