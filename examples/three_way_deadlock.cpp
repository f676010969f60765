// Three locks, each taken while the one before it is held.
//
// Wrong: each of three cooks takes the tool at the left, then the one at the right. No two of them take
// the same two tools in opposite orders, so comparing pairs of locks shows nothing.
// An ordinary run: the cooks come one after the other, and each finds both tools free.
// reweave: a deadlock of all three, each at the line that takes the second tool.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

struct Tool {
    std::mutex lock;
    int uses = 0;
};

static Tool knife, board, pan;

static void cook(Tool &left, Tool &right, int turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * turn));
    left.lock.lock();
    right.lock.lock();
    left.uses++;
    right.uses++;
    right.lock.unlock();
    left.lock.unlock();
}

int main() {
    std::thread first(cook, std::ref(knife), std::ref(board), 0);
    std::thread second(cook, std::ref(board), std::ref(pan), 1);
    std::thread third(cook, std::ref(pan), std::ref(knife), 2);
    first.join();
    second.join();
    third.join();
    std::printf("knife %d, board %d, pan %d\n", knife.uses, board.uses, pan.uses);
}
