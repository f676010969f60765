// What is loaded and unloaded several times: it counts with a lock of a static library.
void own_lock(int *lock);
void own_unlock(int *lock);

static int lock, count;

int count_up(void) {
    own_lock(&lock);
    int now = ++count;
    own_unlock(&lock);
    return now;
}
