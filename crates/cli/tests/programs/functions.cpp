// Calls whose number is known: see tests/functions/main.rs.
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

namespace shop {
static volatile unsigned sink;
template <typename Key, typename Value> struct Shelf {
    APART void put(const Key &, Value) { sink = sink + 1; }
};
APART void price(int) { sink = sink + 1; }
APART void price(const std::string &) { sink = sink + 2; }
APART bool operator<(const Shelf<int, int> &, const Shelf<int, int> &) { return sink != 0; }
APART void throws(int i) {
    sink = sink + 1;
    if (i % 2) throw std::runtime_error("odd");
}
struct Early {
    APART Early() { sink = sink + 1; }
};
static Early early;
} // namespace shop

int main() {
    shop::Shelf<int, int> plain;
    shop::Shelf<std::vector<int>, std::map<int, std::vector<std::pair<std::string, std::string>>>> nested;
    for (int i = 0; i < 30; i++) plain.put(i, i);
    for (int i = 0; i < 40; i++) nested.put({}, {});
    for (int i = 0; i < 50; i++) shop::price(i);
    for (int i = 0; i < 60; i++) shop::price(std::string("x"));
    for (int i = 0; i < 70; i++) (void)(plain < plain);
    for (int i = 0; i < 80; i++) {
        try {
            shop::throws(i);
        } catch (const std::runtime_error &) {
        }
    }
    return 0;
}
