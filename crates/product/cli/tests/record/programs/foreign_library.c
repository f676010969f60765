/* A library that is not built for recording. */
void set_plain(int *flag) { *flag = 1; }
void set_atomic(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
