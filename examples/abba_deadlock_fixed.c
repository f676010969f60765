/* abba_deadlock.c, fixed: whichever way the money goes, the account with the lower address is locked
 * first. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account household = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    int is_ordered = from < to;
    pthread_mutex_lock(is_ordered ? &from->lock : &to->lock);
    pthread_mutex_lock(is_ordered ? &to->lock : &from->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *spend(void *nothing) {
    transfer(&savings, &household, 30);
    return nothing;
}

static void *save(void *nothing) {
    usleep(20000);
    transfer(&household, &savings, 10);
    return nothing;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, spend, NULL);
    pthread_create(&two, NULL, save, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("savings %d, household %d\n", savings.balance, household.balance);
    return 0;
}
