// What `new` makes, and what containers grow by, races on, each in a line of its own.
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct Point { int x, y; };
struct Pair { int left, right; ~Pair() { left = 0; } };
struct Base { Base() : first(1) {} int first; int second = 2; };
struct Derived : Base { Derived() { second++; } };
struct alignas(64) Line { int cells[16]; };

struct Made {
    int count;
    int kind;
    double weight;
    explicit Made(int start)
        : count(start),
          kind(start + 1),
          weight(count) {
        count += kind;
    }
};

// A constructor that makes something of its own size.
struct Owner {
    Owner() { owned = new Owned; owned->next = nullptr; }
    struct Owned { Owned *next; };
    Owned *owned;
};

template <typename T> struct Box { T value; T other; };
template <typename T> Box<T> *boxed() { return new Box<T>; }

Point *plain;
Point *points;
Pair *pairs;
Made *made;
Derived *derived;
Line *line;
Owner *owner;
Box<int> *box;
std::unique_ptr<Point> unique;
std::shared_ptr<Made> shared;
std::vector<int> numbers;
std::map<int, Point> table;
std::list<int> queue;
std::string text;

static void fill() {
    plain = new Point;
    plain->x = 1;
    points = new Point[5];
    points[2].y = 1;
    pairs = new Pair[4];
    pairs[1].left = 1;
    made = new Made(3);
    derived = new (std::nothrow) Derived;
    line = new Line;
    line->cells[1] = 1;
    owner = new Owner;
    box = boxed<int>();
    box->other = 1;
    unique = std::make_unique<Point>();
    shared =
        std::make_shared<Made>(4);
    for (int at = 0; at < 9; at++)
        numbers.push_back(at);
    table[3].x = 4;
    queue.push_back(5);
    for (int at = 0; at < 99; at++)
        text += "abc";
}

static void work() {
    plain->x++;
    points[2].y++;
    pairs[1].left++;
    made->kind++;
    derived->second++;
    line->cells[1]++;
    owner->owned->next = nullptr;
    box->other++;
    unique->y++;
    shared->kind++;
    numbers[5]++;
    table[3].x++;
    queue.back()++;
    text[4]++;
}

int main() {
    fill();
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
}
