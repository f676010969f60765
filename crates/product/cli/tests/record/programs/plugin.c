// A library that a program loads and unloads.
int plugin_sum;

int plugin_add(int value) { return plugin_sum += value; }
