// A library that orders threads by a plain store and a plain load, which is all that this machine needs.
static int flag;

void set_flag(void) {
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
}

int is_flag_set(void) {
    return __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
}
