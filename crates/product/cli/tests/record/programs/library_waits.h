struct gate {
    long name;
    int is_open;
};

void wait_for(struct gate *gate);
int tries(void);

static inline void open_gate(struct gate *gate) {
    __atomic_store_n(&gate->is_open, 1, __ATOMIC_RELEASE);
}
