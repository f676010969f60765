// What containers hold, and what closures capture.
#include <array>
#include <map>
#include <optional>
#include <thread>
#include <vector>

struct Point {
    int x = 0, y = 0;
};

struct Shape {
    std::array<Point, 3> corners;
    std::optional<Point> center;
};

static std::vector<Shape> shapes(4);
static std::map<int, Point> by_number;
static std::vector<int> sums;

int main() {
    int total = 0;
    by_number[7] = Point{};
    sums.assign(5, 0);
    shapes[2].center = Point{};
    auto change = [&total] {
        shapes[2].corners[1].y++;
        shapes[2].center->x++;
        by_number.find(7)->second.x++;
        sums[3]++;
        total++;
    };
    std::thread first(change), second(change);
    first.join();
    second.join();
    return total == 0;
}
