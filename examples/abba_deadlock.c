/* Two locks taken in opposite orders.
 *
 * Wrong: a transfer locks the account that it takes from, then the one that it pays into. Two
 * transfers that go opposite ways lock the same two accounts the opposite way round.
 * An ordinary run: the first transfer is over long before the second begins, so nobody ever waits.
 * reweave: a deadlock between the two calls that lock `to`, each reached from its own thread.
 */
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
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
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
