// A library whose name comes from outside.
int result;


void work(void) {
    result += STEP;
}
