/* Every access is locked, and still a payment is lost.
 *
 * Wrong: `withdraw` reads the balance in one section of the lock and writes what is left in another.
 * A correction that comes in between is overwritten. No two accesses race, so a race detector has nothing
 * to say.
 * An ordinary run: the withdrawal is over before the correction comes.
 * reweave: the block between `reweave_atomic_begin` and `reweave_atomic_end`, which is meant to be
 * atomic, is not: the correction fits in between the line that reads and the line that writes.
 */
#include <pthread.h>
#include <reweave.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int read_balance(void) {
    pthread_mutex_lock(&lock);
    int seen = balance;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void write_balance(int amount) {
    pthread_mutex_lock(&lock);
    balance = amount;
    pthread_mutex_unlock(&lock);
}

static void *withdraw(void *nothing) {
    reweave_atomic_begin("withdraw");
    int seen = read_balance();
    if (seen >= 70)
        write_balance(seen - 70);
    reweave_atomic_end();
    return nothing;
}

static void *correct(void *nothing) {
    usleep(20000); /* the head office is slow */
    write_balance(500);
    return nothing;
}

int main(void) {
    pthread_t customer, office;
    pthread_create(&customer, NULL, withdraw, NULL);
    pthread_create(&office, NULL, correct, NULL);
    pthread_join(customer, NULL);
    pthread_join(office, NULL);
    printf("balance %d\n", balance);
    return 0;
}
