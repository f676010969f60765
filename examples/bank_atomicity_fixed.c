/* bank_atomicity.c, fixed: who reads the balance keeps the lock until the rest is written. */
#include <pthread.h>
#include <reweave.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static void *withdraw(void *nothing) {
    reweave_atomic_begin("withdraw");
    pthread_mutex_lock(&lock);
    if (balance >= 70)
        balance -= 70;
    pthread_mutex_unlock(&lock);
    reweave_atomic_end();
    return nothing;
}

static void *correct(void *nothing) {
    usleep(20000); /* the head office is slow */
    pthread_mutex_lock(&lock);
    balance = 500;
    pthread_mutex_unlock(&lock);
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
