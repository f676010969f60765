// A library that waits for what the program changes in its own code.
#include "library_waits.h"
#include <sched.h>

static int calls;

void wait_for(struct gate *gate) {
    calls++;
    while (!__atomic_load_n(&gate->is_open, __ATOMIC_ACQUIRE)) sched_yield();
}

int tries(void) {
    return calls;
}
