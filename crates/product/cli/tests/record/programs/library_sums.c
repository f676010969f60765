// A library that only computes.
long sum(const int *numbers, int count) {
    long result = 0;
    for (int at = 0; at < count; at++) result += numbers[at];
    return result;
}
