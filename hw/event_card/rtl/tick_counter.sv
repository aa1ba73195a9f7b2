// The free-running count of ticks, in the clock that makes them.
//
// A tick is `cycles` periods of `clk`. `restart` begins a whole tick anew with
// a new `cycles`; the count itself never jumps, so that it can be carried to
// another clock in Gray code.
module tick_counter (
    input  logic        clk,
    input  logic        rst_n,
    input  logic        restart,
    input  logic [31:0] cycles,
    output logic [63:0] count
);
  logic [31:0] left;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      left  <= 32'd0;
      count <= 64'd0;
    end else if (restart) begin
      left <= cycles - 32'd1;
    end else if (left == 32'd0) begin
      left  <= cycles - 32'd1;
      count <= count + 64'd1;
    end else begin
      left <= left - 32'd1;
    end
  end
endmodule
