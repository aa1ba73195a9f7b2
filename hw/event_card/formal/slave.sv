// The bus with free inputs.
module slave (
    input clk
);
  (* anyseq *) reg rst_n, awvalid, wvalid, bready, arvalid, rready, store_ready, is_error, read_error;
  (* anyseq *) reg [63:0] now;
  (* anyseq *) reg [3:0] awaddr, araddr;
  (* anyseq *) reg [0:0] awid, arid;
  (* anyseq *) reg [2:0] awprot;
  (* anyseq *) reg [31:0] wdata, read_data;
  (* anyseq *) reg [3:0] wstrb;

  axi_lite_slave #(
      .ID_BITS(1),
      .ADDR_BITS(4)
  ) dut (
      .clk(clk),
      .rst_n(rst_n),
      .now(now),
      .s_axi_awvalid(awvalid),
      .s_axi_awaddr(awaddr),
      .s_axi_awid(awid),
      .s_axi_awprot(awprot),
      .s_axi_wvalid(wvalid),
      .s_axi_wdata(wdata),
      .s_axi_wstrb(wstrb),
      .s_axi_bready(bready),
      .s_axi_arvalid(arvalid),
      .s_axi_araddr(araddr),
      .s_axi_arid(arid),
      .s_axi_rready(rready),
      .store_ready(store_ready),
      .store_is_error(is_error),
      .read_data(read_data),
      .read_is_error(read_error)
  );
endmodule
