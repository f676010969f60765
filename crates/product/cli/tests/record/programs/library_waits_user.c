// One thread writes and opens a gate, the other waits for that within a library and reads. The gate is
// a global variable, on the stack or on the heap. Who "forgets" waits for another gate.
#include "library_waits.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int message;
static struct gate global;
static struct gate *inner, *outer;

static void *give(void *unused) {
    message = 5;
    open_gate(inner);
    return unused;
}

int main(int count, char **arguments) {
    struct gate local = {0, 0};
    inner = count > 1 && !strcmp(arguments[1], "heap") ? calloc(1, sizeof *inner)
          : count > 1 && !strcmp(arguments[1], "local") ? &local : &global;
    outer = inner;
    if (count > 2) {
        outer = calloc(2, sizeof *outer);
        open_gate(outer);
    }
    pthread_t giver;
    pthread_create(&giver, 0, give, 0);
    wait_for(outer);
    int seen = message;
    pthread_join(giver, 0);
    printf("%d\n", count > 2 ? seen / 9 : seen);
    return 0;
}
